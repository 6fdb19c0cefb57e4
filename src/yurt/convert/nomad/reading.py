"""From Nomad job files to one Yurt job, and a note for all that it cannot say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from yurt.convert.converted import Converted, Note
from yurt.convert.nomad import shape
from yurt.convert.nomad.from_hcl import jobs_from_hcl
from yurt.convert.nomad.from_json import job_from_json
from yurt.convert.nomad.leftovers import leftovers
from yurt.convert.nomad.parts import Part
from yurt.convert.nomad.placement import options_of
from yurt.convert.nomad.restarts import restarts_of_jobs
from yurt.convert.nomad.roles import seats_of, without_role
from yurt.convert.nomad.tasks import RoleRead, merged, read_role
from yurt.convert.source import Source
from yurt.errors import JobError, UsageError
from yurt.job import Job, RoleName
from yurt.job.names import mended
from yurt.job.positions import Reading

if TYPE_CHECKING:
    from pydantic import BaseModel

MHZ_PER_CPU: Final = 2500
"""How many MHz of Nomad's count as one CPU, unless said otherwise: about the clock of cloud machines."""

CHIEF, WORKER, PS, EVALUATOR = RoleName


def read(
    sources: Sequence[Source],
    *,
    variables: Mapping[str, str] | None = None,
    name: str | None = None,
    mhz_per_cpu: int = MHZ_PER_CPU,
    engine_options: Mapping[str, type[BaseModel]] | None = None,
) -> Converted:
    """One Yurt job from one or several Nomad job files.

    Args:
        sources: the files, each HCL2 or JSON.
        variables: values for the HCL files' variables, over their defaults.
        name: the job's name, instead of the one that the files have.
        mhz_per_cpu: how many MHz are one CPU.
        engine_options: the pydantic model of each engine's options, by the engine's name, to look at what is made.

    Raises:
        yurt.errors.UsageError: in one sentence, where the files do not make a job.
    """
    jobs = [job for source in sources for job in _jobs(source, variables or {})]
    for part in jobs:
        shape.check(part)
    notes: list[Note] = []
    seats = seats_of(jobs, notes)
    roles = merged([read_role(seat, mhz_per_cpu, notes) for seat in seats], notes)
    _count(roles, notes)
    data: dict[str, Any] = {"name": _name(jobs, name, notes), **_common(roles, notes), **_whole(jobs, roles, notes)}
    if options := options_of(jobs, seats, sum(role.replicas for role in roles.values()), notes):
        data["engines"] = {"nomad": options}
    for part in jobs:
        part.taken = True
        for key in ("id", "name"):
            part.get(key)
        notes += leftovers(part)
    try:
        job = Job.model_validate(data, context=Reading(engine_options=engine_options or {}))
    except JobError as error:
        first = error.problems[0]
        hint = f"; {first.hint}" if first.hint else ""
        raise UsageError(f"{sources[0].file} makes no Yurt job: {first.key} {first.message}{hint}") from None
    order = {source.file: index for index, source in enumerate(sources)}
    notes.sort(key=lambda note: (order.get(note.file or "", -1), note.line or 0))
    return Converted(job, tuple(dict.fromkeys(notes)))


def _jobs(source: Source, variables: Mapping[str, str]) -> list[Part]:
    if source.text.lstrip().startswith("{"):
        if variables:
            raise UsageError(f"--var {next(iter(variables))}: {source.file} is JSON, which has no variables")
        return [job_from_json(source)]
    jobs = jobs_from_hcl(source, variables)
    if not jobs:
        raise UsageError(f"{source.file} has no job block")
    return jobs


def _name(jobs: Sequence[Part], wanted: str | None, notes: list[Note]) -> str:
    """The job's name: the one that was asked for, else what the jobs' names have in common."""
    if wanted:
        return wanted
    names = []
    for job in jobs:
        part = job.peek("name") or job.peek("id")
        names.append(str(part.value) if part else "")
    bare = list(dict.fromkeys(without_role(name) or name for name in names))
    name = names[0] if len(names) == 1 else bare[0]
    mended_name = mended(name)
    if mended_name != name and len(names) == 1:
        notes.append(jobs[0].note(f"is called {mended_name}: a name in Yurt has small letters, digits and -", "name"))
    elif len(bare) > 1:
        notes.append(jobs[0].note(f"and {len(names) - 1} more jobs become one, called {mended_name}"))
    return mended_name


def _count(roles: dict[RoleName, RoleRead], notes: list[Note]) -> None:
    """The replicas as Yurt wants them: one chief, one evaluator, and a chief where there is a ps."""
    for name in (CHIEF, EVALUATOR):
        role = roles.get(name)
        if role and role.replicas > 1:
            more = role.replicas - 1
            notes.append(
                role.part.note(f"{name} has {role.replicas} replicas, and there can be one: {more} left out", "count")
            )
            role.replicas = 1
    worker = roles.get(WORKER)
    if PS in roles and roles[PS].replicas and CHIEF not in roles and worker and worker.replicas > 1:
        notes.append(
            worker.part.note("the first worker becomes the chief, which runs the training loop beside a ps", "count")
        )
        roles[CHIEF] = worker.copy(replicas=1)
        worker.replicas -= 1


def _common(roles: Mapping[RoleName, RoleRead], notes: list[Note]) -> dict[str, Any]:
    """The command, the image, the variables and the roles: what all roles share stands once."""
    present = {name: roles[name] for name in RoleName if name in roles}
    commands = Counter(role.command for role in present.values() if role.command)
    command = commands.most_common(1)[0][0] if commands else None
    every = list(present.values())
    env = {key: value for key, value in every[0].env.items() if all(role.env.get(key) == value for role in every)}
    images = list(dict.fromkeys(role.image for role in every if role.image))
    notes += [
        role.part.note(f"has the image {role.image}, and a Yurt job has one: {images[0]}", "image")
        for role in every
        if role.image and role.image != images[0]
    ]
    data: dict[str, Any] = {"command": list(command) if command else None, "image": images[0] if images else None}
    if env:
        data["env"] = env
    data["roles"] = {str(name): role.written(command, env) for name, role in present.items()}
    return data


def _whole(jobs: Sequence[Part], roles: Mapping[RoleName, RoleRead], notes: list[Note]) -> dict[str, Any]:
    """What Yurt says once for the whole job: restarts and the grace time."""
    data: dict[str, Any] = {}
    for job in jobs:
        kind = job.get("type")
        if kind and kind.value != "batch":
            notes.append(
                kind.note(f"is {kind.value}: Nomad runs such a job until it is stopped, Yurt until it is trained")
            )
    data.update(restarts_of_jobs(list(roles.values()), notes))
    graces = {role.grace_s for role in roles.values() if role.grace_s is not None}
    if graces:
        data["grace"] = max(graces)
        if len(graces) > 1:
            notes.append(Note("", f"kill_timeout differs between the roles; grace is the longest, {max(graces):g} s"))
    return data
