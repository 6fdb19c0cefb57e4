"""A store that came back empty is filled by the agents, and nobody starts anything again for it."""

from __future__ import annotations

import json
import os
import signal
import time
from dataclasses import replace

import pytest

from tests.support.pods import TOKEN, Pods
from tests.support.runs import wait_until
from yurt.agent.remembering import RememberingStore, keep_filled
from yurt.contract import names
from yurt.contract.config import AgentConfig
from yurt.contract.remembered import is_later
from yurt.contract.state import (
    CHECKING,
    CLOSING,
    FAILED,
    JOINED,
    JOINING,
    LOST,
    RUNNING,
    STARTED,
    Beat,
    Member,
    RunState,
    Verdict,
)
from yurt.contract.sweep import marked
from yurt.kv.client import Store
from yurt.kv.run_store import RunStore
from yurt.kv.server import EmbeddedStore

FIRST = RunState.first(0.0)
ENDED = FIRST.ended(Verdict(FAILED, "so"), 1.0, 0.0)


@pytest.mark.parametrize(
    ("later", "earlier"),
    [
        (replace(FIRST, phase=CHECKING), FIRST),
        (replace(FIRST, phase=CLOSING), replace(FIRST, phase=RUNNING, attempts={"worker/0": 9}, restarts=9)),
        (replace(FIRST, generation=1), replace(FIRST, phase=CLOSING)),
        (replace(FIRST, phase=RUNNING, restarts=1), replace(FIRST, phase=RUNNING)),
        (replace(FIRST, phase=RUNNING, attempts={"worker/1": 1}), replace(FIRST, phase=RUNNING)),
        (ENDED, replace(FIRST, generation=7, phase=RUNNING)),
    ],
)
def test_which_state_is_later(later, earlier):
    assert is_later(later, earlier)
    assert not is_later(earlier, later)
    assert not is_later(earlier, earlier)


def test_a_first_state_is_later_than_none():
    for phase in (JOINING, CHECKING, RUNNING):
        assert not is_later(FIRST, replace(FIRST, phase=phase, since=9.0))


@pytest.fixture
def pods(tmp_path):
    made = Pods(tmp_path, workers=3)
    yield made
    made.end_all()
    wait_until(lambda: not marked(f"{made.run.run_id}/", prefix=True), 5)


class Keeping:
    """The smallest keeper: a store that can lose everything, and somebody who moves the run on."""

    def __init__(self, pods: Pods) -> None:
        self.pods = pods
        self.server = EmbeddedStore(port=pods.port, token=TOKEN).start()
        pods.store.create()

    def lose_everything(self) -> None:
        self.server.close()
        time.sleep(0.3)
        self.server = EmbeddedStore(port=self.pods.port, token=TOKEN).start()
        self.pods.store.create()

    def until(self, phase: str, generation: int) -> RunState:
        def there() -> RunState | None:
            state = self.pods.store.advance()
            return state if (state.phase, state.generation) == (phase, generation) else None

        return wait_until(there, 30, f"{phase} in generation {generation}")


def pids(pods: Pods, generation: int) -> dict[str, int]:
    def all_started() -> dict[str, int] | None:
        members = pods.store.members(generation)
        found = {task: member.pid for task, member in members.items() if member.status == STARTED}
        return found if len(found) == len(pods.run.tasks) else None

    return wait_until(all_started, 30, f"all in generation {generation}")


def test_a_store_that_lost_everything_is_filled_and_the_gang_does_not_notice(pods):
    keeping = Keeping(pods)
    agents = [pods.start("worker", index) for index in range(3)]
    try:
        keeping.until(RUNNING, 0)
        os.kill(pids(pods, 0)["worker/2"], signal.SIGKILL)
        before = keeping.until(RUNNING, 1)
        running = pids(pods, 1)
        (pods.checkpoints / "worker-1").write_text("0")
        wait_until(lambda: pods.store.is_done("worker/1"), 10)
        keeping.lose_everything()
        assert pods.store.read()[0].generation == 0, "it starts as if the run were new"
        filled = wait_until(
            lambda: (state := pods.store.advance()).generation == 1 and len(pods.store.members(1)) == 3 and state, 20
        )
        assert filled == before, "the restart, its cause and the cluster are not lost"
        assert pods.store.is_done("worker/1")
        now = {task: member.pid for task, member in pods.store.members(1).items()}
        assert now == {**running, "worker/1": None}, "the same processes"
        wait_until(lambda: len(pods.store.beats()) == 3, 10)
        (pods.checkpoints / "enough").touch()
        assert wait_until(lambda: pods.store.advance().verdict, 20).outcome == "succeeded"
        assert [agent.wait(20) for agent in agents] == [0, 0, 0]
        assert pods.store.read()[0].restarts == 1
    finally:
        keeping.server.close()


def test_what_happens_while_the_store_is_away_is_not_lost(pods):
    keeping = Keeping(pods)
    agents = [pods.start("worker", index) for index in range(3)]
    try:
        keeping.until(RUNNING, 0)
        running = pids(pods, 0)
        keeping.server.close()
        os.kill(running["worker/0"], signal.SIGKILL)
        time.sleep(1.0)
        assert all(os.path.exists(f"/proc/{running[f'worker/{index}']}") for index in (1, 2)), "nobody else is hurt"
        keeping.server = EmbeddedStore(port=pods.port, token=TOKEN).start()
        pods.store.create()
        keeping.until(RUNNING, 1)
        assert pods.store.read()[0].restarts == 1
        pids(pods, 1)
        (pods.checkpoints / "enough").touch()
        wait_until(lambda: pods.store.advance().verdict, 20)
        assert [agent.wait(20) for agent in agents] == [0, 0, 0]
    finally:
        keeping.server.close()


@pytest.fixture
def remembering(tmp_path):
    """An agent's store on an embedded one, and that."""
    with EmbeddedStore(token=TOKEN) as server, Store(server.address, TOKEN) as client:
        pods = Pods(tmp_path)
        config = AgentConfig.from_json({**pods.order["config"], "task": "worker/0", "allocation": "one"})
        yield RememberingStore(client, config), RunStore(client, pods.run)


def member(**changes) -> Member:
    return replace(Member("worker/0", "one", "127.0.0.1:1", STARTED), **changes)


def test_nobody_with_a_memory_reads_an_older_state(remembering):
    own, others = remembering
    others.create()
    running = replace(own.read()[0], phase=RUNNING, generation=2)
    assert own.swap(running, own.read()[1])
    others.store.delete_prefix(names.run_prefix(others.spec.run_id))
    others.create()
    assert others.read()[0].generation == 0
    assert own.advance() == running
    assert others.read()[0] == running


def test_a_verdict_that_others_have_given_meanwhile_stands(remembering):
    own, others = remembering
    others.create()
    own.swap(replace(own.read()[0], phase=RUNNING, generation=2), own.read()[1])
    others.store.delete_prefix(names.run_prefix(others.spec.run_id))
    others.create()
    others.change(lambda state: state.ended(Verdict(FAILED, "so"), 1.0, 0.0))
    own.refill()
    assert others.read()[0].verdict.message == "so"


def test_only_what_is_missing_is_given_back(remembering):
    own, others = remembering
    others.create()
    own.read()
    own.put_member(0, member())
    own.put_member(0, Member("worker/1", "two", "127.0.0.1:2", STARTED))
    own.put_beat("worker/0", Beat(1.0, {"step": 3}))
    own.mark_done("worker/0", 0, 1)
    others.put_member(0, member(allocation="later"))
    own.refill()
    assert others.member(0, "worker/0")[0].allocation == "later", "somebody else has the seat"
    others.store.delete_prefix(names.run_prefix(others.spec.run_id))
    own.refill()
    assert others.members(0) == {"worker/0": member()}, "of others nothing"
    assert others.beats()["worker/0"].progress == {"step": 3}
    entry = others.store.get(names.done_key(others.spec.run_id, "worker/0"))
    assert json.loads(entry.value) == {"generation": 0, "attempt": 1}


def test_a_store_that_is_restored_as_it_was_a_moment_before_gets_the_rest(remembering):
    own, others = remembering
    others.create()
    own.read()
    own.put_member(0, member())
    others.put_member(0, member(status=JOINED))
    own.refill()
    assert others.member(0, "worker/0")[0] == member()
    others.put_member(0, member(status=LOST))
    own.refill()
    assert others.member(0, "worker/0")[0].status == LOST, "somebody has seen that it is"


def test_what_was_refused_is_not_remembered(remembering):
    own, others = remembering
    others.create()
    own.read()
    assert not own.put_member(0, member(), cas=77)
    assert own.own is None


def test_a_store_that_never_was_there_is_given_up(tmp_path):
    pods = Pods(tmp_path)
    config = AgentConfig.from_json({**pods.order["config"], "task": "worker/0"})
    told = []
    with Store(pods.address, TOKEN) as client:
        keep_filled(RememberingStore(client, config), told.append, never_s=1.0)
        wait_until(lambda: told, 10)
    assert "since this pod began" in told[0]


def test_a_store_that_went_away_is_waited_for_while_the_task_runs(tmp_path):
    pods = Pods(tmp_path)
    config = AgentConfig.from_json({**pods.order["config"], "task": "worker/0", "allocation": "one"})
    server = EmbeddedStore(port=pods.port, token=TOKEN).start()
    told = []
    with Store(pods.address, TOKEN) as client:
        own = RememberingStore(client, config)
        own.create()
        own.put_member(0, member())
        keep_filled(own, told.append, never_s=60.0, gone_s=1.0)
        wait_until(lambda: own.newest, 10)
        server.close()
        time.sleep(2.5)
        assert not told
        with pytest.raises(Exception, match="store"):
            own.put_member(0, member(status=JOINED))
        wait_until(lambda: told, 10)
    assert "since this pod began" not in told[0]
