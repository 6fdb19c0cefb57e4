"""From a loss to the moment the run knows of it, and to the next generation's first step."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.nomad.gangs import LOCAL, TASKS, Bench, Gang, end
from tests.support.lasting_consul import LastingConsul
from tests.support.runs import wait_until

LOST = TASKS[1]
SETTLE_S = 1.0
AWAY_S = 10.0
DEADLINE_S = 8


@dataclass(frozen=True)
class Seen:
    """Seconds from the failure to the run's word on it, and to the first step after it (None: there is none).

    `word` is what the run then took for the cause: whoever fails first, which may be a task that lost its peer.
    """

    noticed_s: float
    step_s: float | None = None
    word: str = ""


def process(_: Bench, gang: Gang, generation: int) -> Seen:
    return _after(gang, generation, end(gang.pid(LOST)))


def agent(_: Bench, gang: Gang, generation: int) -> Seen:
    return _after(gang, generation, end(gang.agent(LOST)))


def allocation(bench: Bench, gang: Gang, generation: int) -> Seen:
    name = gang.run.member(LOST)["allocation"].split(".")[0]
    began = time.time()
    bench.nomad("alloc", "stop", "-detach", name)
    return _after(gang, generation, began)


def drain(bench: Bench, gang: Gang, generation: int) -> Seen:
    node = _node(bench, gang)
    began = time.time()
    bench.nomad("node", "drain", "-enable", "-deadline", "1s", "-yes", "-detach", node)
    seen = _after(gang, generation, began)
    bench.nomad("node", "drain", "-disable", "-yes", node)
    return seen


def machine(bench: Bench, gang: Gang, generation: int) -> Seen:
    """A node with all that is on it, at once."""
    name, agent_pid, task_pid = gang.run.member(LOST)["placed_on"], gang.agent(LOST), gang.pid(LOST)
    bench.cluster.kill(name)
    seen = _after(gang, generation, end(agent_pid, task_pid))
    bench.cluster.start_client(name)
    wait_until(lambda: bench.cluster.ready() == bench.cluster.clients, 60, "the return of the node")
    return seen


def process_without_server(bench: Bench, gang: Gang, generation: int) -> Seen:
    """Nomad's server is killed first, and comes back once the gang trains again."""
    bench.cluster.kill("server")
    began = end(gang.pid(LOST))
    later, step = gang.next_step(generation)
    bench.cluster.start_server()
    wait_until(lambda: bench.cluster.ready() == bench.cluster.clients, 60, "the nodes")
    gang.all_train(later)
    return _seen(gang, generation, began, step)


def _node(bench: Bench, gang: Gang) -> str:
    name = gang.run.member(LOST)["placed_on"]
    return next(each["ID"] for each in bench.client.nodes() if each["Name"] == name)


def _after(gang: Gang, generation: int, began: float) -> Seen:
    later, step = gang.next_step(generation)
    gang.all_train(later)
    return _seen(gang, generation, began, step)


def _seen(gang: Gang, generation: int, began: float, step: float) -> Seen:
    cause = gang.cause(generation)
    return Seen(cause["at"] - began, step - began, f"{cause['task']} {cause['message']}")


#: Failures of a gang that goes on, one after another in one run.
SURVIVED: Mapping[str, Callable[[Bench, Gang, int], Seen]] = {
    "a task's process is killed": process,
    "the same while Nomad's server is away": process_without_server,
    "an agent is killed": agent,
    "`nomad alloc stop`": allocation,
    "`nomad node drain -deadline 1s`": drain,
    "a node is lost": machine,
}
#: Those that take half a minute.
SLOW = ("a node is lost",)
ON_THIS_MACHINE = ("a task's process is killed", "an agent is killed")


def survived(
    bench: Bench, engine: str, names: Sequence[str], repeat: int, say: Callable[[str], None]
) -> dict[str, list[Seen]]:
    """Each failure so often, in one run."""
    found: dict[str, list[Seen]] = {name: [] for name in names}
    with bench.gang(engine) as gang:
        gang.all_train(0)
        for _ in range(repeat):
            for name in names:
                time.sleep(SETTLE_S)
                seen = SURVIVED[name](bench, gang, gang.run.state()["generation"])
                say(f"{engine:9} {name}: noticed {seen.noticed_s:.2f}, first step {seen.step_s:.2f} ({seen.word})")
                found[name].append(seen)
    return found


def consul_away(bench: Bench, engine: str) -> Seen:
    """A process is killed while Consul is away for `AWAY_S`; counted from Consul's first answer."""
    with tempfile.TemporaryDirectory() as folder:
        own = LastingConsul(Path(folder))
        own.start()
        other = Bench(bench.path / f"consul-{time.time():.0f}", bench.cluster, store=own.address)
        other.path.mkdir()
        try:
            with other.gang(engine) as gang:
                gang.all_train(0)
                own.kill()
                end(gang.pid(LOST))
                time.sleep(AWAY_S)
                own.start()
                return _after(gang, 0, time.time())
        finally:
            own.kill()


def job_stopped(bench: Bench, engine: str) -> Seen:
    """To the end of `yurt run`."""
    with bench.gang(engine) as gang:
        gang.all_train(0)
        began = time.time()
        bench.nomad("job", "stop", "-detach", gang.run.run_id)
        assert gang.run.wait() == 4, gang.run.output
        return Seen(time.time() - began)


def half_a_gang(bench: Bench, engine: str) -> Seen:
    """From the job's `start_deadline` to the end of `yurt run`, where another run leaves it one node of three."""
    with bench.gang(engine) as first:
        first.all_train(0)
        second = Bench(bench.path / f"second-{time.time():.0f}", bench.cluster)
        second.path.mkdir()
        with second.gang(engine, start_deadline=DEADLINE_S) as gang:
            assert gang.run.wait() == 3, gang.run.output
            now = time.time()
            return Seen(now - gang.run.state()["created_at"] - DEADLINE_S)


ENDED: Mapping[str, Callable[[Bench, str], Seen]] = {
    f"a task's process is killed while Consul is away for {AWAY_S:.0f} s; from its return": consul_away,
    "`nomad job stop`: to the end of `yurt run`": job_stopped,
    "half a gang: from `start_deadline` to the end of `yurt run`": half_a_gang,
}


def table(found: Mapping[tuple[str, str], Sequence[Seen]]) -> str:
    """A row a failure and engine."""
    rows = ["| what happens | where | noticed after | first step of the next generation after |", "|---|---|---|---|"]
    for (name, engine), seen in found.items():
        where = "this machine" if engine == LOCAL else "Nomad"
        steps = [each.step_s for each in seen if each.step_s is not None]
        rows.append(f"| {name} | {where} | {_spread([each.noticed_s for each in seen])} | {_spread(steps)} |")
    return "\n".join(rows)


def _spread(seconds: Sequence[float]) -> str:
    if not seconds:
        return ""
    return f"{statistics.median(seconds):.2f} s ({min(seconds):.2f} to {max(seconds):.2f})"
