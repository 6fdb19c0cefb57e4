"""From a loss to the end of the run, or to the next generation's first line."""

from __future__ import annotations

import os
import signal
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.kubernetes.gangs import TASKS, Bench, ByYurt, first_process, process_inside
from yurt.engines.kubernetes.client import Client
from yurt.engines.kubernetes.kinds import POD
from yurt.engines.kubernetes.session import open_session

LOST = TASKS[1]
SETTLE_S = 2.0
WAYS_IN_WORDS = {"none": "Indexed Job", "tfjob": "TFJob"}


@dataclass(frozen=True)
class Seen:
    """Seconds from the loss: the run knows of it (`noticed_s`), then `after_s` the first line, or the command's end."""

    noticed_s: float
    after_s: float
    word: str


def process(_bench: Bench, gang: ByYurt, pod: str) -> float:
    member = gang.run.member(LOST)
    assert member
    pid = process_inside(first_process(pod), member["pid"])
    began = time.time()
    os.kill(pid, signal.SIGKILL)
    return began


def container(_bench: Bench, _gang: ByYurt, pod: str) -> float:
    pid = first_process(pod)
    began = time.time()
    os.kill(pid, signal.SIGKILL)
    return began


def deleted(bench: Bench, _gang: ByYurt, pod: str) -> float:
    began = time.time()
    client(bench).delete(POD, pod, bench.namespace, grace_s=0)
    return began


def client(bench: Bench) -> Client:
    os.environ["KUBECONFIG"] = str(bench.cluster.kubeconfig)
    return Client(open_session())


LOSSES: Mapping[str, Callable[[Bench, ByYurt, str], float]] = {
    "a task's process is killed": process,
    "a task's container is killed, the agent first": container,
    "a task's pod is deleted, without grace": deleted,
}


def restarted(bench: Bench, way: str, name: str) -> Seen:
    """A loss of a run that goes on. Each in a run of its own: a Job waits longer with each pod that it has lost."""
    with bench.gang(way) as gang:
        assert isinstance(gang, ByYurt)
        began = _lose(bench, gang, name)
        line = gang.next_line(TASKS[0], 0)
        cause = gang.cause(0)
        return Seen(cause["at"] - began, line - began, f"{cause['task']} {cause['message']}")


def ended(bench: Bench, way: str, name: str) -> Seen:
    """The same of a run that is never restarted."""
    with bench.gang(way, restart="never", max_restarts=0) as gang:
        assert isinstance(gang, ByYurt)
        began = _lose(bench, gang, name)
        gang.run.wait()
        now, state = time.time(), gang.run.state()
        return Seen(state["since"] - began, now - began, state["verdict"]["message"])


def _lose(bench: Bench, gang: ByYurt, name: str) -> float:
    gang.all_train(0)
    time.sleep(SETTLE_S)
    return LOSSES[name](bench, gang, _pod(gang))


def _pod(gang: ByYurt) -> str:
    member = gang.run.member(LOST)
    assert member
    return str(member["placed_on"].rpartition("/")[2])


COLUMNS = (
    "the run knows after",
    "next generation's first line after",
    "`restart: never`: verdict after",
    "`yurt run` has ended after",
)
Found = Mapping[tuple[str, str], Sequence[Seen]]


def table(restarts: Found, ends: Found) -> str:
    """A row a loss and way."""
    rows = [
        f"| what happens | way | {' | '.join(COLUMNS)} |",
        "|---|---|---|---|---|---|",
    ]
    for (name, way), seen in restarts.items():
        end = ends.get((name, way), ())
        cells = [
            _spread([each.noticed_s for each in seen]),
            _spread([each.after_s for each in seen]),
            _spread([each.noticed_s for each in end]),
            _spread([each.after_s for each in end]),
        ]
        rows.append(f"| {name} | {WAYS_IN_WORDS[way]} | {' | '.join(cells)} |")
    return "\n".join(rows)


def _spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return ""
    return f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
