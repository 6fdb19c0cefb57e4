"""What Nomad says, read: allocations' states, what is short, a log over files and allocations, its address."""

from __future__ import annotations

import pytest

from tests.engines.test_nomad_render import CLUSTER, PLACE, RUN, node
from yurt.engines.base import AllocationState as State
from yurt.engines.nomad import fit
from yurt.engines.nomad.address import from_environment
from yurt.engines.nomad.client import _data
from yurt.engines.nomad.logs import TaskLog
from yurt.engines.nomad.nodes import Cluster, node_of
from yurt.engines.nomad.options import NomadOptions
from yurt.engines.nomad.render import render
from yurt.engines.nomad.states import allocation_of, newest
from yurt.errors import UsageError


def event(kind, message="", **details):
    return {"Type": kind, "DisplayMessage": message, "Details": {key: str(value) for key, value in details.items()}}


def ended(code, signal=0, **details):
    return event("Terminated", exit_code=code, signal=signal, **details)


def value(status, *events, desired="run", why="", **changes):
    return {
        "ID": "a1", "Name": "run.worker[1]", "TaskGroup": "worker", "NodeName": "node-2", "NodeID": "n", "CreateIndex": 1,
        "ClientStatus": status, "DesiredStatus": desired, "DesiredDescription": why,
        "TaskStates": {"agent": {"Events": list(events)}} if events else None, **changes,
    }  # fmt: skip


STOPPED = {"desired": "stop", "why": "alloc not needed due to job update"}
MIGRATED = {"desired": "stop", "why": "alloc is being migrated"}


@pytest.mark.parametrize(
    ("answer", "state", "code", "reason"),
    [
        (value("pending"), State.PENDING, None, None),
        (value("pending", event("Template", "Missing: kv.block(x)")), State.PENDING, None, "Missing: kv.block(x)"),
        (value("pending", ended(137), event("Restarting", "Task restarting in 1s")), State.PENDING, None, "restarting"),
        (value("running", event("Started")), State.RUNNING, None, None),
        (value("complete", ended(0)), State.ENDED, 0, None),
        (value("complete", event("Killing"), ended(143), event("Killed"), **STOPPED), State.ENDED, 143, "job was stopped"),
        (value("complete", event("Killing"), ended(143), **MIGRATED), State.LOST, 143, "its node was drained"),
        (value("complete", event("Killing"), ended(0), event("Killed")), State.LOST, 0, "cut off"),
        (value("failed", ended(1)), State.ENDED, 1, "exit code 1"),
        (value("failed", ended(137, 9)), State.ENDED, 137, "killed by signal 9"),
        (value("failed", ended(137, oom_killed="true")), State.ENDED, 137, "out of memory"),
        (value("failed", ended(0, exit_message="executor: error waiting")), State.ENDED, 0, "executor: error waiting"),
        (value("failed", event("Driver Failure", driver_error="x could not be found")), State.ENDED, None, "x could not"),
        (value("failed", event("Failed Validation", validation_error="2 errors:\n\t* a\n")), State.ENDED, None, "errors: * a"),
        (value("failed", event("Task hook failed", message="volumes: no")), State.ENDED, None, "volumes: no"),
        (value("failed", ended(127)), State.ENDED, 127, "nomad: python is not there"),
        (value("failed", event("Killing", "Template failed: no")), State.ENDED, None, "Template failed: no"),
        (value("failed", event("Killing", "Vault: no", fails_task="true")), State.ENDED, None, "Vault: no"),
        (value("failed", ended(1), desired="stop", why="alloc was rescheduled"), State.LOST, 1, "exit code 1"),
        (value("lost", event("Started"), desired="stop"), State.LOST, None, "its node is down"),
        (value("unknown", event("Started")), State.LOST, None, "does not answer"),
    ],
)  # fmt: skip
def test_the_table_of_states(answer, state, code, reason):
    found = allocation_of(answer)
    assert (found.id, found.task, found.placed_on) == ("a1", "worker/1", "node-2")
    assert (found.state, found.exit_code) == (state, code)
    assert found.reason is None if reason is None else reason in found.reason


def test_of_two_allocations_of_a_task_the_newer_counts():
    old, new = value("running"), value("pending", ID="a2", CreateIndex=2)
    assert newest([new, old])["worker/1"]["ID"] == "a2"


def job(tasks=RUN.tasks, **options):
    from dataclasses import replace

    return render(replace(RUN, tasks=tasks), PLACE, NomadOptions(**options), CLUSTER)["job"]


def never(job, cluster=CLUSTER, **options):
    return "; ".join(fit.never(job, cluster, NomadOptions(**options)))


def test_what_can_never_be_placed_is_told_with_what_is_short():
    assert never(job()) == ""
    three = Cluster(CLUSTER.nodes[:3])
    assert (
        never(job(), three) == "4 tasks need as many nodes, and there are 3 that are ready, eligible and run raw_exec"
    )
    assert never(job(share=True), three, share=True) == ""
    small = Cluster(tuple(node(f"n{n}", memory_mb=1000 if n else 4000) for n in range(4)))
    assert never(job(), small) == (
        "each task of chief asks for 16,000 MB of memory; 0 of 4 nodes have as much (the largest 4,000), and 1 are needed; "
        "each task of worker asks for 16,000 MB of memory; 0 of 4 nodes have as much (the largest 4,000), and 2 are needed"
    )
    assert never(job(datacenters=("eu",)), CLUSTER, datacenters=("eu",)) == "no node is in eu; there are nodes in dc1"
    away = Cluster(tuple(node(f"n{n}", eligible=False) for n in range(2)))
    assert never(job(), away) == "none of the 2 nodes in dc1 is ready and eligible"
    assert "has a healthy driver docker" in never(job(), CLUSTER, driver="docker")
    assert never(job(), Cluster(unknown="no Nomad")) == "", "nothing is known"


METRIC = {"NodesEvaluated": 3, "NodesExhausted": 3, "DimensionExhausted": {"cpu": 2}, "CoalescedFailures": 1,
          "ConstraintFiltered": {"distinct_hosts": 1}}  # fmt: skip


def test_what_the_scheduler_says_in_words():
    assert [str(misfit) for misfit in fit.waiting({"worker": METRIC})] == [
        "2 tasks of worker: cpu is used up on 2 of 3 nodes; another task of the run is on the node on 1 of 3 nodes"
    ]
    assert fit.waiting(None) == []
    assert fit.reason_of({"NodesEvaluated": 0, "NodesAvailable": {"dc9": 0}}).endswith("(ready nodes: 0 in dc9)")
    assert fit.reason_of({"NodesEvaluated": 1, "ConstraintFiltered": {"${node.class} = x": 1}}).startswith(
        "${node.class}"
    )


def test_only_what_every_node_lacks_is_hopeless():
    assert fit.hopeless({"worker": METRIC}) == []
    lacking = {"NodesEvaluated": 3, "ConstraintFiltered": {"missing drivers": 2, "${node.class} = x": 1}}
    assert [misfit.role for misfit in fit.hopeless({"worker": lacking, "ps": METRIC})] == ["worker"]
    crowded = {"NodesEvaluated": 3, "ConstraintFiltered": {"distinct_hosts": 3}}
    assert fit.hopeless({"worker": crowded}) == []


def test_a_node_has_what_is_not_reserved():
    found = node_of(
        {
            "ID": "1", "Name": "n", "Datacenter": "dc1", "Status": "ready", "SchedulingEligibility": "eligible",
            "NodeResources": {"Cpu": {"CpuShares": 4000}, "Memory": {"MemoryMB": 2000},
                              "Devices": [{"Type": "gpu", "Instances": [{}, {}]}]},
            "ReservedResources": {"Cpu": {"CpuShares": 500}, "Memory": {"MemoryMB": 100}},
            "Attributes": {"cpu.numcores": "2"}, "Drivers": {"exec": {"Detected": True, "Healthy": True}, "docker": {}},
        }
    )  # fmt: skip
    assert (found.cpu_mhz, found.memory_mb, found.cores, found.has("gpu")) == (3500, 1900, 2, 2)
    assert (found.drivers, found.usable) == (frozenset({"exec"}), True)


class Files:
    """Log files of allocations, as a node has them."""

    def __init__(self):
        self.files: dict[tuple[str, int], bytes] = {}
        self.gone: set[str] = set()

    def read(self, allocation, path, offset):
        number = int(path.rpartition(".")[2])
        if allocation in self.gone or (allocation, number) not in self.files:
            return None
        return self.files[allocation, number][offset:]

    def names(self, allocation, _folder):
        return [f"agent.stdout.{n}" for a, n in self.files if a == allocation] + [
            "agent.stderr.0",
            ".agent.stdout.fifo",
        ]


def test_a_log_goes_on_over_files_and_allocations():
    files = Files()
    log = TaskLog("agent", files.read, files.names, 8)
    assert log.read() == b"", "nothing was placed yet"
    log.take("a")
    assert log.read() == b"", "it has not started yet"
    files.files["a", 0] = b"12345678"
    assert log.read() == b"12345678"
    files.files["a", 1] = b"90"
    assert log.read() == b"90"
    log.take("b")
    files.files["a", 1] = b"90x"
    assert log.read() == b"x", "the first is read to its end"
    files.files["b", 0] = b"second"
    assert (log.read(), log.read(), log.cursor.position) == (b"second", b"", 17)


def test_a_log_whose_node_is_gone_waits_for_the_next_allocation():
    files = Files()
    log = TaskLog("agent", files.read, files.names, 100)
    log.take("a")
    files.files["a", 0] = b"first"
    assert log.read() == b"first"
    files.gone.add("a")
    assert log.read() == b""
    log.take("b")
    files.files["b", 0] = b"second"
    assert log.read() == b"second"


def test_a_log_that_nomad_has_cut_goes_on_with_what_is_left():
    files = Files()
    log = TaskLog("agent", files.read, files.names, 8)
    log.take("a")
    files.files = {("a", 4): b"four", ("a", 5): b"five"}
    assert log.read() + log.read() == b"fourfive"


def test_the_frames_of_a_stream():
    assert _data('{"Data":"YWI=","File":"x","Offset":2}{}\n{"Data":"Yw=="}'.replace("\n", "")) == b"abc"
    assert _data('{"Data":"YWI="}rpc error: EOF') == b"ab"
    assert _data("") == b""


@pytest.mark.parametrize(
    ("text", "url"),
    [("", "http://127.0.0.1:4646"), ("https://nomad", "https://nomad:443"), ("10.0.0.1:4646", "http://10.0.0.1:4646"),
     ("http://[::1]:4646/", "http://[::1]:4646")],
)  # fmt: skip
def test_where_nomad_is(text, url):
    assert from_environment({"NOMAD_ADDR": text}).url == url


@pytest.mark.parametrize("text", ["ftp://x", "http://", "http://x:port", "unix:///run/nomad"])
def test_what_is_no_address(text):
    with pytest.raises(UsageError, match="NOMAD_ADDR"):
        from_environment({"NOMAD_ADDR": text})
