"""What pods say of the agents in them, on what an API server of Kubernetes 1.36 really said (golden/kubernetes_seen.json)."""

import copy
import json
from pathlib import Path

import pytest

from yurt.engines.base import AllocationState
from yurt.engines.kubernetes.states import GONE, allocation_of, allocations, is_keeper, lost, newest, task_of

SEEN = json.loads((Path(__file__).parent / "golden/kubernetes_seen.json").read_text())
PENDING, RUNNING, ENDED, LOST = AllocationState


def pod(name, number=0):
    return copy.deepcopy(SEEN[name]["pods"][number])


def newest_of(name, task="worker/0"):
    return newest(SEEN[name]["pods"])[task]


@pytest.mark.parametrize(
    ("name", "state", "code", "reason"),
    [
        ("cpu", PENDING, None, None),
        ("gated", PENDING, None, None),
        ("pull", PENDING, None, None),
        ("initruns", PENDING, None, None),
        ("port", RUNNING, None, None),
        ("sidecar", RUNNING, None, None),  # the pod is Pending: its sidecar has no image
        ("before:deleted", RUNNING, None, None),
        ("sidesleep", ENDED, 0, None),  # the pod is Running: its sidecar goes on
        ("onfailure", ENDED, 3, "its agent ended with exit code 3"),
        ("word", LOST, 137, "the training failed"),
        (
            "nocommand",
            ENDED,
            128,
            'it could not be started: exec: "/no/such": stat /no/such: no such file or directory',
        ),
        ("killed", LOST, 137, "its agent was killed by signal 9"),
        ("oom", LOST, 137, "it ran out of memory"),
        ("oomchild", ENDED, 0, "something in it was killed for want of memory, yet it exited 0"),
        ("evicted", LOST, 137, 'its node evicted it: Usage of EmptyDir volume "v" exceeds the limit "1Mi".'),
        ("init", LOST, None, "its init container setup ended with exit code 9"),
        ("deleting:deleted", LOST, None, "its pod was deleted"),
        ("evicting:evict", LOST, None, "it was evicted (is its node being drained?)"),
        ("preempting:victim", LOST, None, "it was preempted by a pod of a higher priority"),
    ],
)
def test_state(name, state, code, reason):
    found = allocation_of(newest_of(name))
    assert (found.state, found.exit_code, found.reason) == (state, code, reason)


def test_out_of_memory_is_said_by_name():
    names = [name for name in SEEN if name != "nodes"]
    assert {name for name in names for each in SEEN[name]["pods"] if allocation_of(each).out_of_memory} == {
        "oom",
        "oomchild",
    }


def test_a_node_that_died_takes_its_pod_with_it():
    silent = allocations(SEEN["silent:dead"]["pods"], ["worker/0", "worker/1"])
    assert [(each.state, each.reason) for each in silent] == [(RUNNING, "its node does not answer"), (RUNNING, None)]
    after = SEEN["lost:dead"]["pods"]
    assert [each.state for each in allocations(after, ["worker/0", "worker/1"])] == [PENDING, RUNNING]
    (gone,) = lost(after)
    assert gone.task == "worker/0"
    assert gone.placed_on == "node2/dead-worker-0-dfs6r"
    assert gone.reason == "its node does not answer, or has a taint that it does not tolerate"


def test_names():
    found = allocation_of(pod("onfailure"))
    assert found.id == f"{pod('onfailure')['metadata']['uid']}.3"
    assert found.task == "worker/0"
    assert found.placed_on == f"node1/{pod('onfailure')['metadata']['name']}" or found.placed_on.startswith("node2/")


def test_a_container_that_waits_to_be_started_again_is_the_run_that_ended():
    value = pod("onfailure")
    (status,) = value["status"]["containerStatuses"]
    status["lastState"] = status["state"]
    status["state"] = {"waiting": {"reason": "CrashLoopBackOff"}}
    found = allocation_of(value)
    assert (found.id[-2:], found.state, found.exit_code) == (".3", ENDED, 3)
    status["state"] = {"running": {}}
    status["restartCount"] = 4
    found = allocation_of(value)
    assert (found.id[-2:], found.state, found.exit_code) == (".4", RUNNING, None)


@pytest.mark.parametrize(
    ("code", "message", "state", "reason"),
    [
        (143, "", LOST, "its pod was deleted"),
        (137, "", LOST, "its pod was deleted"),
        (143, "told to go", LOST, "its pod was deleted"),
        (0, "", ENDED, None),
        (1, "worker/0 failed", ENDED, "worker/0 failed"),
        (139, "", LOST, "its agent was killed by signal 11"),
    ],
)
def test_an_end_while_the_pod_is_deleted(code, message, state, reason):
    value = pod("deleting:deleted")
    end = {"exitCode": code, "reason": "Error", "message": message}
    value["status"]["containerStatuses"][0]["state"] = {"terminated": end}
    found = allocation_of(value)
    assert (found.state, found.reason) == (state, reason)


def test_a_pod_that_is_gone_was_deleted_unless_it_had_ended():
    assert allocation_of({**pod("before:deleted"), GONE: True}).state is LOST
    assert allocation_of({**pod("sidesleep"), GONE: True}).state is ENDED
    assert allocation_of({**pod("cpu"), GONE: True}).state is LOST


def test_a_pod_of_a_node_that_is_gone():
    value = pod("before:deleted")
    value["status"]["phase"] = "Unknown"
    assert allocation_of(value).state is LOST
    assert allocation_of(value).reason == "its node does not answer"


def test_the_newest_pod_that_is_not_going_counts():
    old, new = pod("before:deleted"), pod("before:deleted")
    new["metadata"].update(uid="new", creationTimestamp="2026-12-01T14:00:00Z")
    assert newest([old, new])["worker/0"] is new
    new["metadata"]["deletionTimestamp"] = "2026-12-01T14:00:05Z"
    assert newest([old, new])["worker/0"] is old
    assert newest([old | {GONE: True}, new])["worker/0"] is new


def test_whose_pods():
    labels = {"yurt/role": "ps", "training.kubeflow.org/replica-index": "0"}
    assert task_of({"metadata": {"labels": labels}}) == "ps/0"
    keeper = {"metadata": {"labels": {"yurt/role": "keeper", "batch.kubernetes.io/job-completion-index": "0"}}}
    assert task_of(keeper) is None
    assert is_keeper(keeper)
    assert task_of({"metadata": {}}) is None
    (found,) = allocations([], ["worker/1"])
    assert (found.id, found.state) == ("", PENDING)
