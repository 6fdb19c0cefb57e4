"""Agents alone: once a run is submitted it needs no launcher. On the embedded store and on a real Consul."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import replace

import pytest

from tests.contract.test_values import SPEC
from tests.support.runs import wait_until
from yurt.contract.config import AgentConfig
from yurt.contract.spec import TaskSpec
from yurt.contract.sweep import marked
from yurt.kv.client import Store
from yurt.kv.run_store import RunStore
from yurt.launcher.agent_zip import agent_zip

SCRIPT = """
import os, time
place = os.environ["YURT_CHECKPOINT_DIR"]
print("started", flush=True)
while not os.path.exists(place + "/enough"):
    time.sleep(0.05)
"""


@pytest.fixture
def gang(served, tmp_path, monkeypatch):
    """Starts agents by hand, as an engine would, and never looks at the run's state for them."""
    address, token = served.address, served.token
    monkeypatch.setenv("YURT_HOME", str(tmp_path / "home"))
    tasks = tuple(TaskSpec("worker", index, (sys.executable, "-c", SCRIPT)) for index in range(3))
    run = replace(
        SPEC,
        run_id=f"gang-{uuid.uuid4().hex[:8]}",
        strategy="multi-worker-mirrored",
        tasks=tasks,
        restart="on-failure",
        max_restarts=3,
        start_deadline_s=20.0,
        grace_s=1.0,
        output=None,
        submitted_at=time.time(),
    )
    store = RunStore(Store(address, token), run)
    store.create()
    started = []

    def start(task: str, allocation: str = "first") -> subprocess.Popen[str]:
        folder = tmp_path / task.replace("/", "-")
        folder.mkdir(exist_ok=True)
        config = AgentConfig(
            run=run, task=task, allocation=f"{task}-{allocation}", store=address, token=token, host="127.0.0.1",
            placed_on="here", work_dir=str(folder), model_dir=str(folder), checkpoint_dir=str(tmp_path),
            state_dir=str(folder), publisher=("true",), observe=task == run.deciding,
        )  # fmt: skip
        log = (folder / "log").open("a")
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(agent_zip()), "-"],
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            text=True,
        )
        process.stdin.write(config.dumps())
        process.stdin.close()
        started.append(process)
        return process

    yield start, store, tmp_path
    for process in started:
        process.kill()
        process.wait()
    wait_until(lambda: not marked(f"{run.run_id}/", prefix=True), 5)
    store.store.delete_prefix(f"yurt/runs/{run.run_id}/")


def pid(store: RunStore, task: str, generation: int) -> int:
    def started() -> int | None:
        member, _ = store.member(generation, task)
        return member.pid if member and member.status == "started" else None

    return wait_until(started, 20, f"{task} in generation {generation}")


def test_a_gang_restarts_and_ends_without_a_launcher(gang):
    start, store, place = gang
    agents = [start(f"worker/{index}") for index in range(3)]
    victim = pid(store, "worker/2", 0)
    pid(store, "worker/0", 0)
    os.kill(victim, signal.SIGKILL)
    for index in range(3):
        assert pid(store, f"worker/{index}", 1)
    (place / "enough").touch()
    assert [agent.wait(20) for agent in agents] == [0, 0, 0]
    state, _ = store.read()
    assert (state.verdict.outcome, state.generation, state.restarts) == ("succeeded", 1, 1)


def test_the_deciding_agent_lost_and_brought_back_by_its_engine_joins_the_next_generation(gang):
    start, store, place = gang
    agents = [start(f"worker/{index}") for index in range(3)]
    pid(store, "worker/0", 0)
    agents[0].kill()
    agents[0].wait()
    agents[0] = start("worker/0", "second")
    for index in range(3):
        assert pid(store, f"worker/{index}", 1)
    (place / "enough").touch()
    assert [agent.wait(20) for agent in agents] == [0, 0, 0]
    assert store.read()[0].verdict.outcome == "succeeded"


def test_an_agent_told_to_stop_is_a_loss_and_no_success(gang):
    start, store, place = gang
    agents = [start(f"worker/{index}") for index in range(3)]
    pid(store, "worker/1", 0)
    agents[1].terminate()
    assert agents[1].wait(10) == 143
    agents[1] = start("worker/1", "second")
    assert pid(store, "worker/1", 1)
    (place / "enough").touch()
    assert [agent.wait(20) for agent in agents] == [0, 0, 0]


def test_an_agent_that_comes_back_to_a_decided_run_leaves_at_once(gang):
    start, store, place = gang
    (place / "enough").touch()
    agents = [start(f"worker/{index}") for index in range(3)]
    assert [agent.wait(20) for agent in agents] == [0, 0, 0]
    assert start("worker/1", "second").wait(10) == 0
    assert store.read()[0].restarts == 0
