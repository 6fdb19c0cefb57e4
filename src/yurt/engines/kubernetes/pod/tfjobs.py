"""What is to be done with the TFJobs of a run that has no verdict yet: pure, for the keeper and for the launcher.

The training operator fails a TFJob when one of its running pods is deleted, evicted or lost with its node (seen with
1.9.3), and starts none of them again. The run goes on in a new TFJob, under a new name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from yurt.contract.state import JOINING, Member, RunState

# What to do.
WATCH: Final = "watch"  # nothing, until something changes
WAIT: Final = "wait"  # nothing yet: look again soon
DELETE: Final = "delete"  # the TFJob that is over, with what is left of it
COUNT: Final = "count"  # the gang is lost: a restart, which the state does not have yet
SUBMIT: Final = "submit"  # a new TFJob

_ROLE: Final = "yurt/role"
_INDEX: Final = "training.kubeflow.org/replica-index"
_KEEPER: Final = "keeper"
_ENDED: Final = ("Succeeded", "Failed")
#: The rank of a trouble that tells least.
_DELETED: Final = 3


@dataclass(frozen=True, slots=True)
class Why:
    """In words, and the task whose pod it was, where that can be seen: the operator says neither."""

    words: str
    task: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """`name` is the TFJob's that is deleted or submitted; `why` it is over, where that is known."""

    action: str
    name: str = ""
    why: Why | None = None


def next_step(
    run_id: str,
    state: RunState,
    members: Mapping[str, Member],
    tfjobs: Sequence[Mapping[str, Any]],
    pods: Sequence[Mapping[str, Any]],
    *,
    seen: int | None = None,
    patient: bool = True,
) -> Step:
    """The next step; taken and asked again, it leads to a TFJob that runs.

    `members` are those of the state's generation, `tfjobs` and `pods` all of the run's that the cluster has. `seen` is
    the number of the newest TFJob that this caller knows of from before. Without `patient` pods that do not end are not
    waited for any more. A TFJob's number is that of the restarts when it was submitted, so that numbers rise.
    """
    if state.verdict is not None:
        return Step(WATCH)
    newest = max(tfjobs, key=lambda each: number_of(run_id, each), default=None)
    if newest is not None and not is_over(newest):
        return Step(WATCH)
    number = seen if newest is None else number_of(run_id, newest)
    if number is None and not members and state.restarts == 0:
        return Step(WATCH)  # not submitted yet
    if newest is not None and "deletionTimestamp" not in newest["metadata"]:
        return Step(DELETE, newest["metadata"]["name"], why_over(newest, pods))
    if patient and any(still_here(pod) for pod in pods):
        return Step(WAIT)
    if members or (number is not None and state.restarts <= number):
        return Step(COUNT)
    if state.phase != JOINING:
        return Step(WAIT)  # the state is about to move on
    return Step(SUBMIT, f"{run_id}-{state.restarts}")


def number_of(run_id: str, tfjob: Mapping[str, Any]) -> int:
    """0 for the first, which has the run's own name."""
    end = str(tfjob["metadata"]["name"]).removeprefix(f"{run_id}-")
    return int(end) if end.isdecimal() else 0


def is_over(tfjob: Mapping[str, Any]) -> bool:
    """Whether none of its pods will be started again. Failed and Succeeded can both be true (seen with 1.9.3)."""
    conditions = tfjob.get("status", {}).get("conditions") or ()
    ended = any(each["type"] in _ENDED and each["status"] == "True" for each in conditions)
    return ended or "deletionTimestamp" in tfjob["metadata"]


def still_here(pod: Mapping[str, Any]) -> bool:
    """Whether it is a task's and runs, or may: one on a dead node stays until the node's object is removed."""
    if pod["metadata"].get("labels", {}).get(_ROLE) == _KEEPER or pod["status"].get("phase") in _ENDED:
        return False
    target = _disruption(pod)
    return target is None or target.get("reason") != "DeletionByTaintManager"


def why_over(tfjob: Mapping[str, Any], pods: Sequence[Mapping[str, Any]]) -> Why:
    """Why a TFJob is over, by the pods that are left of it."""
    name = tfjob["metadata"]["name"]
    troubled = [(trouble, _task(pod)) for pod in pods if (trouble := _pod_trouble(pod)) is not None]
    (rank, since, words), task = min(troubled, key=lambda each: each[0], default=((_DELETED, "", ""), None))
    # The operator deletes the others a moment later: where times do not tell, or the first is gone, nobody knows.
    one = rank != _DELETED or sum(each[1] == since for each, _ in troubled) == 1
    replicas = sum(each.get("replicas", 1) for each in tfjob.get("spec", {}).get("tfReplicaSpecs", {}).values())
    if words and one and (rank != _DELETED or len(troubled) >= replicas):
        return Why(f"TFJob {name} is over: {words}", task)
    conditions = tfjob.get("status", {}).get("conditions") or ()
    said = [each.get("message") for each in conditions if each["type"] in _ENDED and each["status"] == "True"]
    return Why(f"TFJob {name} is over" + (f": {said[-1]}" if said and said[-1] else ""))


def _task(pod: Mapping[str, Any]) -> str:
    labels = pod["metadata"].get("labels", {})
    return f"{labels.get(_ROLE)}/{labels.get(_INDEX)}"


def _pod_trouble(pod: Mapping[str, Any]) -> tuple[int, str, str] | None:
    """(how little it tells, since when, in words); None for a pod without any, or that is no task's."""
    name = pod["metadata"]["name"]
    if pod["metadata"].get("labels", {}).get(_ROLE) == _KEEPER:
        return None
    on = f" on {node}" if (node := pod.get("spec", {}).get("nodeName")) else ""
    deleted = str(pod["metadata"].get("deletionTimestamp", ""))
    if (target := _disruption(pod)) is not None:
        reason, message = target.get("reason", "DisruptionTarget"), target.get("message", "")
        return (
            0,
            str(target.get("lastTransitionTime", "")),
            f"pod {name}{on} was disrupted: {reason}" + (f" ({message.strip()})" if message else ""),
        )
    if reason := pod["status"].get("reason"):
        message = pod["status"].get("message", "")
        return 1, deleted, f"pod {name}{on}: {reason}" + (f" ({message.strip()})" if message else "")
    for each in pod["status"].get("containerStatuses") or ():
        ended = each.get("state", {}).get("terminated")
        if ended and (code := ended.get("exitCode")) and (not deleted or code == 137):
            reason = ended.get("reason", "Error")
            return 2, str(ended.get("finishedAt", "")), f"pod {name}{on} ended with exit code {code} ({reason})"
    return (_DELETED, deleted, f"pod {name}{on} was deleted") if deleted else None


def _disruption(pod: Mapping[str, Any]) -> Mapping[str, Any] | None:
    for each in pod["status"].get("conditions") or ():
        if each["type"] == "DisruptionTarget" and each["status"] == "True":
            found: Mapping[str, Any] = each
            return found
    return None
