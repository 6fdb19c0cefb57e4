"""Which group or task of a Nomad job is which role of a Yurt job."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from yurt.convert.converted import Note
from yurt.convert.nomad.parts import Part
from yurt.errors import UsageError
from yurt.job import RoleName

_WORDS: Final = {
    **dict.fromkeys(("chief", "chiefs", "master", "coordinator", "leader"), RoleName.CHIEF),
    **dict.fromkeys(("worker", "workers", "wk"), RoleName.WORKER),
    **dict.fromkeys(("ps", "parameterserver", "paramserver"), RoleName.PS),
    **dict.fromkeys(("evaluator", "evaluators", "eval", "evaluation"), RoleName.EVALUATOR),
}
_PS: Final = re.compile(r"param(eter)?s?[-_ .]?servers?")


@dataclass(frozen=True, slots=True)
class Seat:
    """A role and what plays it."""

    role: RoleName
    job: Part
    group: Part
    task: Part


def role_in(name: str) -> RoleName | None:
    """The role that a name speaks of, as in ``tf-worker-0``; None if it speaks of none, or of several."""
    words = re.split(r"[^a-z]+", _PS.sub("ps", re.sub(r"(?<=[a-z])(?=[A-Z])", "-", name).lower()))
    roles = {_WORDS[word] for word in words if word in _WORDS}
    return roles.pop() if len(roles) == 1 else None


def without_role(name: str) -> str:
    """The name without the word for its role and the number behind it: ``weather-worker-0`` -> ``weather``."""
    known = "|".join(sorted(_WORDS, key=len, reverse=True))
    bare = re.sub(rf"(?i)(^|[-_. ])({_PS.pattern}|{known})[-_. ]?[0-9]*(?=$|[-_. ])", "", name)
    return bare.strip("-_. ")


def seats_of(jobs: Sequence[Part], notes: list[Note]) -> list[Seat]:
    """Every role of the jobs; what plays none is told in `notes`.

    Raises `UsageError` where no role can be made out.
    """
    groups = [(job, group) for job in jobs for group in job.all("group")]
    if not groups:
        raise UsageError(f"{jobs[0].where} has no task groups, so nothing would run")
    seats: list[Seat] = []
    strangers: list[tuple[Part, Part]] = []
    for job, group in groups:
        own = _seats_of_group(job, group, notes)
        seats += own
        if not own:
            strangers.append((job, group))
    if not seats and len(groups) == 1:
        job, group = groups[0]
        task = _main_task(group, notes)
        notes.append(group.note(f"names no role; it is taken as {RoleName.WORKER}"))
        return [Seat(RoleName.WORKER, job, group, task)]
    if not seats:
        names = ", ".join(_name(group) for _, group in groups)
        raise UsageError(
            f"{jobs[0].where} has the groups {names}, and none is named for a role",
            hint="name them chief, worker, ps or evaluator, or convert the one that trains alone",
        )
    for _, group in strangers:
        group.plain()
        notes.append(group.note("is named for no role of TensorFlow, and is left out"))
    return seats


def _seats_of_group(job: Part, group: Part, notes: list[Note]) -> list[Seat]:
    """The roles of one group: by the names of several tasks, or of the group, its task, the job or the file."""
    mains = [task for task in group.all("task") if not _is_sidecar(task)]
    by_task = [role_in(_name(task)) for task in mains]
    if len(mains) > 1 and None not in by_task and len(set(by_task)) == len(by_task):
        _leave_out((task for task in group.all("task") if task not in mains), notes)
        return [Seat(role, job, group, task) for role, task in zip(by_task, mains, strict=True) if role]
    names: Iterable[str] = (_name(group), *(_name(task) for task in mains[:1]))
    if len(job.all("group")) == 1:
        names = (*names, _name(job), PurePath(job.file).name.split(".")[0])
    role = next((role for name in names if (role := role_in(name))), None)
    return [Seat(role, job, group, _main_task(group, notes))] if role else []


def _main_task(group: Part, notes: list[Note]) -> Part:
    """The task that trains; the others of its group are told."""
    tasks = group.all("task")
    mains = [task for task in tasks if not _is_sidecar(task)]
    if len(mains) > 1:
        leaders = [task for task in mains if (leader := task.peek("leader")) and leader.value is True]
        mains = leaders or [task for task in mains if role_in(_name(task))] or mains
    if len(mains) != 1:
        names = ", ".join(_name(task) for task in tasks) or "none"
        raise UsageError(
            f"{group.where}: the group {_name(group)} must have one task that trains, and its tasks are {names}",
            hint="give the one that trains `leader = true`",
        )
    _leave_out((task for task in tasks if task is not mains[0]), notes)
    return mains[0]


def _leave_out(tasks: Iterable[Part], notes: list[Note]) -> None:
    for task in tasks:
        task.plain()
        notes.append(task.note("runs beside the training in its group, which Yurt's tasks do not do: left out"))


def _is_sidecar(task: Part) -> bool:
    lifecycle = task.peek("lifecycle")
    return lifecycle is not None and lifecycle.peek("hook") is not None


def _name(part: Part) -> str:
    name = part.get("name") or part.get("id")
    return str(name.value) if name else "(without a name)"
