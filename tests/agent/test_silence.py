"""A member whose machine is gone without a word is taken for lost by those that are left."""

from __future__ import annotations

import time
import uuid
from dataclasses import replace

import pytest

from tests.contract.test_values import SPEC
from tests.support.runs import wait_until
from yurt.agent.silence import Silence, watch_silence
from yurt.contract.spec import TaskSpec
from yurt.contract.state import EXITED, LOST, STARTED, Beat, Member
from yurt.kv.client import Store
from yurt.kv.losing import lose
from yurt.kv.run_store import RunStore


def test_only_a_beat_that_stands_still_is_silence():
    silence = Silence(10)
    assert silence.silent({"worker/0": 5, "worker/1": 6}, 0.0) == []
    assert silence.silent({"worker/0": 5, "worker/1": 7}, 9.0) == []
    assert silence.silent({"worker/0": 5, "worker/1": 7, "worker/2": 8}, 10.0) == ["worker/0"]
    assert silence.silent({"worker/0": 9, "worker/1": 7}, 18.0) == []
    assert silence.silent({"worker/0": 9, "worker/1": 7}, 20.0) == ["worker/1"]


@pytest.fixture
def run(served):
    spec = replace(
        SPEC,
        run_id=f"silent-{uuid.uuid4().hex[:8]}",
        tasks=tuple(TaskSpec("worker", index, ("a",)) for index in range(3)),
    )
    store = RunStore(Store(served.address, served.token), spec)
    store.create()
    for index in range(3):
        store.put_member(0, Member(f"worker/{index}", f"alloc-{index}.0", "127.0.0.1:1", STARTED))
        store.put_beat(f"worker/{index}", Beat(at=0.0))
    yield store
    store.store.delete_prefix(f"yurt/runs/{spec.run_id}/")


def test_a_member_is_lost_only_once_and_only_where_it_is_the_one_that_is_meant(run):
    assert not lose(run, 0, "worker/1", "another", "gone")
    assert lose(run, 0, "worker/1", "alloc-1", "gone")
    assert not lose(run, 0, "worker/1", "alloc-1", "gone")
    assert not lose(run, 0, "worker/9", None, "gone"), "it never came"
    member, _ = run.member(0, "worker/1")
    assert (member.status, member.exit.reason, member.exit.message) == (LOST, "lost", "gone")
    ended = replace(run.member(0, "worker/2")[0], status=EXITED)
    run.put_member(0, ended)
    assert not lose(run, 0, "worker/2", None, "gone"), "its end is known"


def test_the_one_that_falls_silent_is_lost_and_the_others_are_not(run):
    told = []
    watch_silence(run, 0.6, lambda: told.append(time.monotonic()))

    def lost() -> bool:
        for index in (0, 2):
            run.put_beat(f"worker/{index}", Beat(at=time.time()))
        return bool(told)

    wait_until(lost, 20)
    statuses = [member.status for _, member in sorted(run.members(0).items())]
    assert statuses == [STARTED, LOST, STARTED]
