"""What to do next: one pure function of the stored state, the same for every engine and every observer.

The rules follow the strategy. Synchronous training: any lost task means a new generation. Parameter server: a lost
worker comes back alone, a lost ps or chief means a new generation. An evaluator never decides the verdict, and comes
back alone. A task that exited 0 is never run again; so where one task of a synchronous gang has finished and another
then fails, there is no gang left to start again and the run fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from yurt.contract import exits
from yurt.contract.spec import ALL_WORKERS, EVALUATOR, KERAS_LEGACY, PARAMETER_SERVER, PS, WORKER, RunSpec
from yurt.contract.state import (
    BROKEN,
    CANCELLED,
    CHECKING,
    CLOSING,
    DEADLINE,
    EXITED,
    FAILED,
    JOINING,
    LOST,
    NO_NAME,
    PUBLISH_FAILED,
    REACHABLE,
    RUNNING,
    SUCCEEDED,
    Cause,
    Exit,
    Member,
    RunState,
    Verdict,
)
from yurt.contract.tf_config import cluster_of

#: Seconds that a survivor of a failed gang has between SIGTERM and SIGKILL: it has nothing left to save, and
#: TensorFlow 2.21 swallows SIGTERM under MultiWorkerMirroredStrategy.
SURVIVOR_GRACE_S: Final = 0.3
#: Seconds that the other workers have to end by themselves once the deciding task has exited 0 (seen: up to 9 s).
LEAVE_S: Final = 10.0
#: Seconds after which an agent that does not report the end of its task is no longer waited for.
REPORT_S: Final = 15.0
#: As many causes of restarts are kept in the state.
KEPT_CAUSES: Final = 20


def decide(spec: RunSpec, state: RunState, members: Mapping[str, Member], now: float) -> RunState | None:
    """The state that must follow, or None where there is nothing to do.

    `members` are those of the state's generation, by task name. `now` is Unix time in seconds. The caller stores
    the result by compare-and-set and asks again until it gets None.
    """
    if state.verdict is not None:
        return None
    if state.phase == CLOSING:
        return _close(spec, state, members, now)
    if state.phase == RUNNING and _succeeded(spec, members):
        return replace(state, phase=CLOSING, since=now)
    if failure := _first_failure(spec, state, members):
        return _after_failure(spec, state, members, failure, now)
    if spec.deadline_s is not None and now - spec.submitted_at > spec.deadline_s:
        message = f"the run's deadline of {spec.deadline_s:g} s passed"
        return state.ended(Verdict(DEADLINE, message), now, min(spec.grace_s, SURVIVOR_GRACE_S))
    if state.phase == JOINING:
        return _join(spec, state, members, now)
    if state.phase == CHECKING:
        return _check(spec, state, members, now)
    return None


def stop(spec: RunSpec, state: RunState, now: float, *, at_once: bool, by: str) -> RunState | None:
    """The state after somebody asked for the run to stop; None where it needs no change."""
    if state.verdict is not None:
        return replace(state, stop_grace_s=0.0) if at_once and state.stop_grace_s else None
    verdict = Verdict(CANCELLED, f"stopped by {by}")
    return state.ended(verdict, now, 0.0 if at_once else spec.grace_s)


def next_generation(spec: RunSpec, state: RunState, cause: Cause, now: float) -> RunState:
    """The whole gang starts again: new processes, new addresses, one more restart counted."""
    return replace(
        state,
        generation=state.generation + 1,
        phase=JOINING,
        since=now,
        cluster=None,
        attempts={task.name: state.attempts.get(task.name, 0) + 1 for task in spec.tasks},
        restarts=state.restarts + 1,
        causes=(*state.causes, cause)[-KEPT_CAUSES:],
        stop_grace_s=min(spec.grace_s, SURVIVOR_GRACE_S),
    )


def leave_s(spec: RunSpec, role: str) -> float:
    """Seconds that a task of this role has to end by itself once the run is closing; then it is ended."""
    if role == PS or (role == WORKER and spec.strategy == PARAMETER_SERVER):
        return 0.0  # server.join() blocks by design: they never end by themselves
    return spec.grace_s if role == EVALUATOR else LEAVE_S


def _succeeded(spec: RunSpec, members: Mapping[str, Member]) -> bool:
    needed = spec.training if spec.success == ALL_WORKERS else (spec.deciding,)
    return all(
        (member := members.get(task)) is not None and member.exit is not None and member.exit.code == 0
        for task in needed
    )


def _first_failure(spec: RunSpec, state: RunState, members: Mapping[str, Member]) -> tuple[Member, Exit] | None:
    """The failure that no restart has answered yet and that the store saw first."""
    fresh = [
        (member, member.exit)
        for member in members.values()
        if member.exit is not None
        and member.exit.code != 0
        and member.exit.reason != "stopped"
        and member.exit.attempt == state.attempts.get(member.task, 0)
        and not (spec.task(member.task).role == EVALUATOR and not _may_return(spec, state, member.exit))
    ]
    return min(fresh, key=lambda pair: (pair[0].order, pair[1].at), default=None)


def _may_return(spec: RunSpec, state: RunState, end: Exit) -> bool:
    return exits.may_restart(spec.restart, end) and state.restarts < spec.max_restarts


def _after_failure(
    spec: RunSpec, state: RunState, members: Mapping[str, Member], failure: tuple[Member, Exit], now: float
) -> RunState:
    member, end = failure
    role = spec.task(member.task).role
    words = f"{member.task} {exits.in_words(end)}"
    finished = [task for task in spec.gang if _finished(members.get(task))]
    alone = role == EVALUATOR or (spec.strategy == PARAMETER_SERVER and role == WORKER and state.phase == RUNNING)
    wants_legacy = end.reason == exits.WANTS_LEGACY_KERAS and role != EVALUATOR
    alone = alone and not wants_legacy  # a gang has one Keras
    if not alone and finished:
        words += f", after {_listed(finished)} had finished"
    if not exits.may_restart(spec.restart, end):
        return _failed(state, words, member.task, end, now)
    if state.restarts >= spec.max_restarts:
        if spec.max_restarts:
            words += f"; the limit of {spec.max_restarts} restart{'s' * (spec.max_restarts > 1)} is used up"
        return _failed(state, words, member.task, end, now)
    if not alone and finished:
        return _failed(state, f"{words}; what has finished is not run again", member.task, end, now)
    cause = Cause(task=member.task, generation=state.generation, message=words, at=now)
    if alone:
        return replace(
            state,
            attempts={**state.attempts, member.task: state.attempts.get(member.task, 0) + 1},
            restarts=state.restarts + 1,
            causes=(*state.causes, cause)[-KEPT_CAUSES:],
        )
    if wants_legacy:
        state = replace(state, keras=KERAS_LEGACY)
    return next_generation(spec, state, cause, now)


def _failed(state: RunState, message: str, task: str, end: Exit, now: float) -> RunState:
    return state.ended(Verdict(FAILED, message, task=task, exit=end), now, SURVIVOR_GRACE_S)


def _finished(member: Member | None) -> bool:
    return member is not None and member.exit is not None and member.exit.code == 0


def _join(spec: RunSpec, state: RunState, members: Mapping[str, Member], now: float) -> RunState | None:
    missing = [task.name for task in spec.tasks if task.name not in members]
    if not missing:
        addresses = {task: member.address for task, member in members.items()}
        return replace(state, phase=CHECKING, cluster=cluster_of(spec, addresses))
    if now - state.since <= spec.start_deadline_s:
        return None
    came = [f"{task} on {member.placed_on}" for task, member in sorted(members.items())]
    message = f"the start deadline of {spec.start_deadline_s:g} s passed: {_listed(missing)} never came" + (
        f"; {_listed(came)} waited" if came else ""
    )
    return state.ended(Verdict(DEADLINE, message, task=missing[0]), now, 0.0)


def _check(spec: RunSpec, state: RunState, members: Mapping[str, Member], now: float) -> RunState | None:
    pairs = [
        f"{member.task} on {member.placed_on} cannot reach {peer} at {address}: {error}"
        for member in members.values()
        for peer, address, error in member.unreachable
    ]
    if pairs:
        hint = "open the port between the machines, or choose another network address"
        if all(error.startswith(NO_NAME) for member in members.values() for _, _, error in member.unreachable):
            hint = "does the cluster's DNS answer there, and is the machine of that task ready?"
        return state.ended(Verdict(BROKEN, "; ".join(sorted(pairs)[:3]), hint=hint), now, 0.0)
    waiting = [task.name for task in spec.tasks if task.name not in members]
    waiting += [member.task for member in members.values() if member.status not in (REACHABLE, EXITED)]
    if not waiting:
        return replace(state, phase=RUNNING, since=now)
    if now - state.since <= spec.start_deadline_s:
        return None
    message = f"the start deadline of {spec.start_deadline_s:g} s passed while {_listed(waiting)} looked for peers"
    return state.ended(Verdict(DEADLINE, message, task=waiting[0]), now, 0.0)


def _close(spec: RunSpec, state: RunState, members: Mapping[str, Member], now: float) -> RunState | None:
    deciding = members.get(spec.deciding)
    published = deciding.published if deciding else None
    if spec.output is not None and published is None:
        if deciding is None or deciding.status != LOST:
            return None  # still publishing: the publisher has its own limit
        published = {"ok": False, "message": f"{spec.deciding} was lost while it published the model"}
    waiting = [task for task in spec.tasks if task.name != spec.deciding and not _over(members.get(task.name))]
    patience = max([leave_s(spec, task.role) for task in waiting], default=0.0) + REPORT_S
    if waiting and now - state.since <= patience:
        return None
    done = replace(state, published=published)
    if published is not None and not published.get("ok"):
        verdict = Verdict(
            PUBLISH_FAILED,
            str(published.get("message", "the model could not be published")),
            task=spec.deciding,
            hint=published.get("hint"),
        )
    else:
        verdict = Verdict(SUCCEEDED, "succeeded", task=spec.deciding)
    return done.ended(verdict, now, SURVIVOR_GRACE_S)


def _over(member: Member | None) -> bool:
    return member is not None and member.status in (EXITED, LOST)


def _listed(names: list[str]) -> str:
    """``a``, ``a and b``, ``a, b and 7 more``."""
    if len(names) > 6:
        return f"{', '.join(names[:5])} and {len(names) - 5} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
