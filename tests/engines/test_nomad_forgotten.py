"""Lost tasks that Nomad will not start again by itself are asked for; what a real Nomad does then is in test_nomad_runs.py."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from yurt.engines.base import Allocation, AllocationState
from yurt.engines.nomad import engine

LOST = Allocation("b", "worker/1", AllocationState.LOST)


class Forgetful:
    """A cluster as `NomadEngine.remind` sees it: one lost task, whose successor nobody places."""

    def __init__(self, **changes) -> None:
        self.evaluation, self.stop, self.changed = "complete", False, []
        vars(self).update(changes)

    def allocations(self, _job_id):
        lost = {"ID": "b", "Name": "r.worker[1]", "TaskGroup": "worker", "CreateIndex": 9, "ClientStatus": "lost"}
        return [{**lost, "ID": "a", "CreateIndex": 5, "ClientStatus": "complete"}, lost], 9

    def evaluations(self, _job_id):
        return [{"Status": "complete"}, {"Status": self.evaluation}]

    def job(self, job_id):
        policy = {"Attempts": 0, "Delay": 5}
        return {"ID": job_id, "Stop": self.stop, "TaskGroups": [{"Name": "worker", "ReschedulePolicy": policy}]}

    def change(self, job) -> None:
        self.changed.append(job)


@pytest.mark.parametrize(
    ("changes", "asks"),
    [({}, 1), ({"evaluation": "blocked"}, 0), ({"evaluation": "pending"}, 0), ({"stop": True}, 0)],
    ids=["forgotten", "waits for room", "about to be placed", "stopped by somebody"],
)
def test_a_task_that_nomad_has_forgotten_is_asked_for_once_it_is_late(monkeypatch, changes, asks):
    now = 100.0
    monkeypatch.setattr(engine, "time", SimpleNamespace(monotonic=lambda: now))
    one, cluster = engine.NomadEngine(), Forgetful(**changes)
    one._job_id, one._client = "r", cluster
    one.remind([LOST])
    now = 109.0
    one.remind([LOST])
    assert cluster.changed == [], "Nomad places another at once where it can"
    now = 111.0
    one.remind([LOST])
    one.remind([LOST])
    assert [job["TaskGroups"][0]["ReschedulePolicy"]["Delay"] for job in cluster.changed] == [6] * asks
    one.remind([])
    now = 200.0
    one.remind([LOST])
    assert len(cluster.changed) == asks, "lost anew, it has its time again"
