"""What Nomad says of an allocation, as an `AllocationState` and a reason in words: a table.

Facts are of Nomad 1.0.18, seen. Whether a task has finished is in the run's store alone: a drained, a stopped and a
finished allocation all end ``complete``.

========================  =============================================  =======
ClientStatus              and                                            state
========================  =============================================  =======
pending                                                                  PENDING
running                                                                  RUNNING
complete                  no ``Killing`` before its end                  ENDED
complete                  its job was stopped                            ENDED
complete                  migrated, or killed without a word (a client   LOST
                          that was cut off ends it so)
failed                    another replaces it                            LOST
failed                                                                   ENDED
lost, unknown             its node is down, or does not answer           LOST
========================  =============================================  =======
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from yurt.engines.base import Allocation, AllocationState

#: Events that tell why a task did not start, each with what its detail is called.
_START_FAULTS: Final = {
    "Driver Failure": "driver_error",
    "Failed Validation": "validation_error",
    "Failed Artifact Download": "download_error",
    "Setup Failure": "setup_error",
    "Task hook failed": "message",
}
_MIGRATED: Final = "alloc is being migrated"
_MOVED: Final = "its node was drained or its allocation stopped, and no other node is free"
#: How `env` and a shell end where the program is not there that they were told to become.
_NO_PROGRAM: Final = 127
_JOB_STOPPED: Final = "alloc not needed due to job update"


def allocation_of(value: Mapping[str, Any]) -> Allocation:
    """One of the answer of ``/v1/job/:id/allocations``."""
    state, reason, code = _state(value)
    return Allocation(
        id=value["ID"],
        task=task_of(value),
        state=state,
        placed_on=value.get("NodeName") or str(value.get("NodeID", ""))[:8],
        exit_code=code,
        reason=reason,
    )


def task_of(value: Mapping[str, Any]) -> str:
    """``worker/1`` for an allocation named ``run.worker[1]``."""
    return f"{value['TaskGroup']}/{value['Name'].rpartition('[')[2].rstrip(']')}"


def newest(values: Iterable[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    """Each task's last allocation: while a node is away Nomad has two of one name."""
    found: dict[str, Mapping[str, Any]] = {}
    for value in values:
        task = task_of(value)
        if task not in found or value["CreateIndex"] > found[task]["CreateIndex"]:
            found[task] = value
    return found


def _state(value: Mapping[str, Any]) -> tuple[AllocationState, str | None, int | None]:
    status, desired = value["ClientStatus"], value["DesiredStatus"]
    events = _events(value)
    code, ended = _end(events)
    if status == "pending":
        return AllocationState.PENDING, _waiting_for(events), None
    if status == "running":
        return AllocationState.RUNNING, None, None
    if status in ("lost", "unknown"):
        return AllocationState.LOST, "its node is down" if status == "lost" else "its node does not answer", None
    if status == "failed":
        state = AllocationState.LOST if desired == "stop" else AllocationState.ENDED
        return state, _fault(events) or ended, code
    if desired == "stop":
        why = value.get("DesiredDescription", "")
        if why == _JOB_STOPPED:
            return AllocationState.ENDED, "its Nomad job was stopped", code
        moved = _MOVED if why == _MIGRATED else why
        return AllocationState.LOST, moved, code
    if any(event["Type"] == "Killing" for event in events):
        return AllocationState.LOST, "its node was cut off from the servers and ended it", code
    return AllocationState.ENDED, None, code


def _events(value: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The last ten at most: Nomad keeps no more."""
    states = value.get("TaskStates") or {}
    return next((state.get("Events") or () for state in states.values()), ())


def _end(events: Sequence[Mapping[str, Any]]) -> tuple[int | None, str | None]:
    """Exit code and words of the last end of the task."""
    for event in reversed(events):
        if event["Type"] == "Terminated":
            details = event.get("Details") or {}
            code = int(details.get("exit_code") or 0)
            if details.get("oom_killed") == "true":
                return code, "it ran out of memory"
            if message := details.get("exit_message"):
                return code, str(message)
            number = int(details.get("signal") or 0)
            if code == _NO_PROGRAM:
                return code, "its agent was not started: the Python of engines: nomad: python is not there"
            return (
                code,
                f"its agent was killed by signal {number}" if number else f"its agent ended with exit code {code}",
            )
    return None, None


def _fault(events: Sequence[Mapping[str, Any]]) -> str | None:
    """Why a task could not be started, in Nomad's words."""
    for event in reversed(events):
        if event["Type"] in _START_FAULTS:
            details = event.get("Details") or {}
            said = str(details.get(_START_FAULTS[event["Type"]]) or event.get("DisplayMessage", ""))
            return f"{event['Type']}: {' '.join(said.split())}"
        if event["Type"] == "Killing":
            said = str(event.get("DisplayMessage", ""))
            if "Template failed" in said or (event.get("Details") or {}).get("fails_task") == "true":  # Vault's
                return " ".join(said.split())
    return None


def _waiting_for(events: Sequence[Mapping[str, Any]]) -> str | None:
    """What a pending allocation waits for."""
    if not events:
        return None
    last = events[-1]
    if last["Type"] in ("Template", "Driver", "Restarting") or last["Type"] in _START_FAULTS:
        return str(last.get("DisplayMessage") or last["Type"])
    return None
