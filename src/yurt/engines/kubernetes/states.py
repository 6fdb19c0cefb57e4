"""What a pod says of the agent in it, as an `AllocationState` and a reason in words: a table.

Facts are of Kubernetes 1.36 and the training operator 1.9.3, seen. The container ``tensorflow`` alone decides: init
containers and sidecars never do. Whether a task has finished is in the run's store alone.

================================  ===============================================  =======
the pod                           its container ``tensorflow``                     state
================================  ===============================================  =======
                                  was never started                                PENDING
                                  runs                                             RUNNING
                                  ended with a code of its own                     ENDED
                                  ended by a signal                                LOST
                                  could not be started (StartError)                ENDED
phase Unknown, or NodeLost        has not ended by itself                          LOST
evicted, preempted, its node      has not ended by itself                          LOST
drained or lost (DisruptionTarget)
is being deleted, or is gone      has not ended by itself                          LOST
================================  ===============================================  =======

An agent that is told to go (SIGTERM) ends with 143 and one that is killed with 137: neither is an end "by itself".
A container that is started again in place is another allocation: the id is the pod's uid and the count of restarts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from yurt.engines.base import Allocation, AllocationState
from yurt.engines.kubernetes.labels import JOB_INDEX, ROLE, TFJOB_INDEX

#: The task's container, in both ways.
CONTAINER: Final = "tensorflow"
_KEEPER: Final = "keeper"
#: Set by `PodWatch` on the last that was seen of a pod that is gone.
GONE: Final = "yurt.gone"
#: Exit codes beyond it are of processes that a signal has ended: 128 and its number.
_SIGNAL: Final = 128
#: What SIGKILL and SIGTERM leave.
_KILLED: Final = (137, 143)
#: The kubelet could not start the process: its message says why.
START_FAULTS: Final = ("StartError", "ContainerCannotRun", "RunContainerError", "ContainerStatusUnknown")
_OUT_OF_MEMORY: Final = "OOMKilled"
_WHY_DISRUPTED: Final = {
    "EvictionByEvictionAPI": "it was evicted (is its node being drained?)",
    "PreemptionByScheduler": "it was preempted by a pod of a higher priority",
    "DeletionByTaintManager": "its node does not answer, or has a taint that it does not tolerate",
    "DeletionByPodGC": "its node is gone",
    "TerminationByKubelet": "it was evicted by its node",
}


def task_of(pod: Mapping[str, Any]) -> str | None:
    """``worker/1``; None for a pod that is no task's, such as the keeper."""
    labels = pod["metadata"].get("labels") or {}
    role = labels.get(ROLE)
    index = labels.get(JOB_INDEX) or labels.get(TFJOB_INDEX)
    return f"{role}/{index}" if role and role != _KEEPER and index else None


def is_keeper(pod: Mapping[str, Any]) -> bool:
    """It keeps the run's state."""
    return (pod["metadata"].get("labels") or {}).get(ROLE) == _KEEPER


def newest(pods: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """The pod that counts for each task: the newest that is not going; only where there is none, one that is."""
    found: dict[str, Mapping[str, Any]] = {}
    for pod in pods:
        task = task_of(pod)
        if task is not None and (task not in found or _rank(pod) > _rank(found[task])):
            found[task] = pod
    return found


def allocations(pods: Iterable[Mapping[str, Any]], tasks: Sequence[str]) -> list[Allocation]:
    """One for each task, in their order; a task without a pod is pending and has no id."""
    last = newest(pods)
    return [
        allocation_of(last[task]) if task in last else Allocation("", task, AllocationState.PENDING) for task in tasks
    ]


def lost(pods: Iterable[Mapping[str, Any]]) -> list[Allocation]:
    """All that are lost, also where another pod has the task already: their seats are free."""
    found = [allocation_of(pod) for pod in pods if task_of(pod) is not None]
    return [each for each in found if each.state is AllocationState.LOST]


def allocation_of(pod: Mapping[str, Any]) -> Allocation:
    """What a pod of a task is as an allocation."""
    state, reason, code = _state(pod)
    meta = pod["metadata"]
    status = task_status(pod)
    ended = (status.get("state") or {}).get("terminated") or (status.get("lastState") or {}).get("terminated") or {}
    return Allocation(
        id=f"{meta['uid']}.{int(status.get('restartCount') or 0)}",
        task=task_of(pod) or "",
        state=state,
        placed_on="/".join(filter(None, ((pod.get("spec") or {}).get("nodeName"), meta["name"]))),
        exit_code=code,
        reason=reason,
        out_of_memory=ended.get("reason") == _OUT_OF_MEMORY,
    )


def task_status(pod: Mapping[str, Any], part: str = "containerStatuses") -> Mapping[str, Any]:
    """The status of the container that decides; empty where there is none yet."""
    statuses = (pod.get("status") or {}).get(part) or ()
    found: Mapping[str, Any] = next((each for each in statuses if each["name"] == CONTAINER), {})
    return found


def condition(pod: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A condition of an object, empty where it has none of that type."""
    conditions = (pod.get("status") or {}).get("conditions") or ()
    found: Mapping[str, Any] = next((each for each in conditions if each["type"] == name), {})
    return found


def is_going(pod: Mapping[str, Any]) -> bool:
    """It is being deleted, or is gone."""
    return bool(pod["metadata"].get("deletionTimestamp")) or GONE in pod


def _rank(pod: Mapping[str, Any]) -> tuple[bool, str, bool, str]:
    over = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return not is_going(pod), pod["metadata"].get("creationTimestamp") or "", not over, pod["metadata"]["uid"]


def _state(pod: Mapping[str, Any]) -> tuple[AllocationState, str | None, int | None]:
    status = task_status(pod)
    state = status.get("state") or {}
    # One that waits to be started again shows the end of the run that its id is of.
    ended = state.get("terminated") or ((status.get("lastState") or {}).get("terminated") if _waits(state) else None)
    away = _taken_away(pod)
    if ended:
        code = int(ended.get("exitCode") or 0)
        told = code in _KILLED and ended.get("reason") != _OUT_OF_MEMORY
        words = away if away and told else _end_in_words(ended, code)
        if "waiting" in state:
            words = f"{words}; {_short(state['waiting'].get('reason'))}: it is started again in its pod"
        return (AllocationState.LOST if _was_killed(ended) else AllocationState.ENDED), words, code
    if away is not None:
        return AllocationState.LOST, away, None
    if (pod.get("status") or {}).get("phase") == "Failed":
        return AllocationState.LOST, _failure(pod), None
    if "running" in state:
        return AllocationState.RUNNING, _doubt(pod), None
    return AllocationState.PENDING, None, None


def _waits(state: Mapping[str, Any]) -> bool:
    return "running" not in state


def _taken_away(pod: Mapping[str, Any]) -> str | None:
    """Why the pod is not to be counted on any more."""
    status = pod.get("status") or {}
    target = condition(pod, "DisruptionTarget")
    if status.get("reason") == "Evicted":
        return f"its node evicted it: {_short(status.get('message'))}"
    if target.get("status") == "True":
        return _WHY_DISRUPTED.get(str(target.get("reason"))) or _short(target.get("message"))
    if status.get("phase") == "Unknown" or status.get("reason") == "NodeLost":
        return "its node does not answer"
    if is_going(pod):
        return "its pod was deleted"
    return None


def _failure(pod: Mapping[str, Any]) -> str:
    """Of a pod that has failed before its task was started."""
    status = pod["status"]
    faults = (init_fault(each) for each in status.get("initContainerStatuses") or ())
    said = _short(f"{status.get('reason') or 'its pod failed'}: {status.get('message') or ''}").rstrip(": ")
    return next(filter(None, faults), said)


def init_fault(status: Mapping[str, Any]) -> str | None:
    """How an init container has failed, from its status."""
    ended = (status.get("state") or {}).get("terminated") or {}
    if not ended.get("exitCode"):
        return None
    said = f": {_short(ended['message'])}" if ended.get("message") else ""
    return f"its init container {status['name']} ended with exit code {ended['exitCode']}{said}"


def start_fault(message: Any) -> str:
    """Why a process could not be started: the end of the chain of errors that containerd gives."""
    return _short(message).rpartition("unable to start container process: ")[2].removesuffix(": unknown")


def _was_killed(ended: Mapping[str, Any]) -> bool:
    """By a signal, or told to go by one; one that could not even be started was not."""
    code = int(ended.get("exitCode") or 0)
    if ended.get("reason") == _OUT_OF_MEMORY:
        return code != 0
    return code > _SIGNAL and ended.get("reason") not in START_FAULTS


def _end_in_words(ended: Mapping[str, Any], code: int) -> str | None:
    if ended.get("reason") == _OUT_OF_MEMORY:
        return "it ran out of memory" if code else "something in it was killed for want of memory, yet it exited 0"
    if ended.get("reason") in START_FAULTS:
        return f"it could not be started: {start_fault(ended.get('message') or ended['reason'])}"
    if message := _short(ended.get("message")):
        return message
    if code == 0:
        return None
    if code > _SIGNAL:
        return f"its agent was killed by signal {code - _SIGNAL}"
    return f"its agent ended with exit code {code}"


def _doubt(pod: Mapping[str, Any]) -> str | None:
    """A running pod that the cluster has made unready though its containers are ready: its node is silent."""
    silent = (
        condition(pod, "Ready").get("status") == "False"
        and condition(pod, "ContainersReady").get("status") == "True"
        and not (pod.get("spec") or {}).get("readinessGates")
    )
    return "its node does not answer" if silent else None


def _short(text: Any, most: int = 400) -> str:
    """In one line."""
    line = " ".join(str(text or "").split())
    return line if len(line) <= most else f"{line[: most - 3]}..."
