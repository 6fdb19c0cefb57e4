"""What a task is doing, in one word, from what the run's members say. Pure."""

from __future__ import annotations

from typing import Final

from yurt.contract.spec import RunSpec
from yurt.contract.state import CLOSING, EXITED, JOINED, LOST, REACHABLE, STARTED, Member, RunState
from yurt.launcher.records import Snapshot

STARTING: Final = "starting"  # its agent has not come yet
JOINING: Final = "joining"  # it waits for the others
READY: Final = "ready"  # it reaches the others; its process is about to start
RUNNING: Final = "running"
PUBLISHING: Final = "publishing"  # it has finished and puts the model where the job says
FINISHED: Final = "finished"
FAILED: Final = "failed"
STOPPING: Final = "stopping"  # the run is at its end, the task not yet
STOPPED: Final = "stopped"  # by Yurt: whatever it answered, this is no failure
GONE: Final = "lost"  # its agent or machine is gone
STATES: Final = (STARTING, JOINING, READY, RUNNING, PUBLISHING, FINISHED, FAILED, STOPPING, STOPPED, GONE)


def task_state(spec: RunSpec, snapshot: Snapshot | None, task: str, *, over: bool) -> str:
    """One of `STATES`; `over` says that nobody serves the run any more.

    Once the run has failed, the first task that did has failed; the rest were stopped.
    """
    if snapshot is None:
        return STARTING
    state, member = snapshot.state, snapshot.members.get(task)
    if member is None:
        return STARTING if state.verdict is None else STOPPED
    if member.exit is not None and member.status in (EXITED, LOST):
        return _ended(spec, state, member)
    if state.verdict is not None:
        return STOPPED if over else STOPPING
    return {JOINED: JOINING, REACHABLE: READY, STARTED: RUNNING}.get(member.status, STARTING)


def _ended(spec: RunSpec, state: RunState, member: Member) -> str:
    assert member.exit
    if member.exit.code == 0:
        publishes = state.phase == CLOSING and member.task == spec.deciding and spec.output is not None
        return PUBLISHING if publishes and member.published is None else FINISHED
    decided = state.verdict is not None
    if member.exit.reason == "stopped" or (decided and state.verdict and member.task != state.verdict.task):
        return STOPPED
    return GONE if member.status == LOST else FAILED
