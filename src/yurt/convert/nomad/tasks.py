"""One role as a Nomad group and its task describe it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from yurt.convert.converted import Note
from yurt.convert.nomad.commands import command_of
from yurt.convert.nomad.durations import seconds
from yurt.convert.nomad.hcl_values import text_of
from yurt.convert.nomad.parts import Part
from yurt.convert.nomad.restarts import Restarts, restarts_of
from yurt.convert.nomad.roles import Seat
from yurt.convert.nomad.templates import env_of_templates
from yurt.errors import UsageError
from yurt.job import RoleName
from yurt.job.names import ENV_PATTERN

_MIB: Final = 1024**2
#: What Nomad gives a task that asks for nothing: MHz, MiB and seconds. `nomad job inspect` prints them as if asked for.
_DEFAULT_MHZ: Final = 100
_DEFAULT_MIB: Final = 300
_DEFAULT_GRACE_S: Final = 5.0


@dataclass(slots=True)
class RoleRead:
    """A role as it was read; without a `command` it runs TensorFlow's standard server."""

    name: RoleName
    part: Part
    replicas: int
    command: tuple[str, ...] | None
    env: dict[str, str]
    image: str | None
    cpus: float | None
    memory_bytes: int | None
    gpus: int | None
    grace_s: float | None
    restarts: Restarts | None

    def copy(self, replicas: int) -> RoleRead:
        """The same with another count."""
        return replace(self, replicas=replicas, env=dict(self.env))

    def written(self, command: tuple[str, ...] | None, env: Mapping[str, str]) -> dict[str, Any]:
        """The role in a job file whose `command` and `env` all roles share."""
        own = {
            "cpus": self.cpus,
            "memory": self.memory_bytes,
            "gpus": self.gpus,
            "env": {key: value for key, value in self.env.items() if key not in env},
            "command": list(self.command) if self.command and self.command != command else None,
            "standard_server": self.command is None,
        }
        return {"replicas": self.replicas, **{key: value for key, value in own.items() if value}}


def read_role(seat: Seat, mhz_per_cpu: int, notes: list[Note]) -> RoleRead:
    """What one group and its task say. Raises `UsageError` where they do not say what runs."""
    group, task = seat.group, seat.task
    for part in (group, task):
        part.get("name")
    task.get("leader")
    count = group.get("count")
    run = command_of(task, notes)
    env = {**env_of_templates(task, notes), **_env(task, notes), **run.env}
    resources = task.get("resources") or Part({}, "resources", task.place, task.file, task.line)
    return RoleRead(
        name=seat.role,
        part=group,
        replicas=_whole(count, 1, "count"),
        command=run.words,
        env=env,
        image=run.image,
        cpus=_cpus(resources, mhz_per_cpu, notes),
        memory_bytes=_memory(resources),
        gpus=_gpus(resources, notes),
        grace_s=_grace(task, notes),
        restarts=restarts_of(seat, notes),
    )


def merged(roles: Sequence[RoleRead], notes: list[Note]) -> dict[RoleName, RoleRead]:
    """The roles by name: groups that play the same role, such as worker-0 and worker-1, are counted together."""
    found: dict[RoleName, RoleRead] = {}
    for role in roles:
        if not role.replicas:
            notes.append(role.part.note(f"has no replicas, so there is no {role.name}", "count"))
            continue
        first = found.setdefault(role.name, role)
        if first is role:
            continue
        unlike = [
            what
            for what in ("command", "env", "image", "cpus", "memory_bytes", "gpus")
            if getattr(first, what) != getattr(role, what)
        ]
        if unlike:
            words = ", ".join(word.removesuffix("_bytes") for word in unlike)
            message = f"is counted as {role.name} with {first.part.place}; its own {words} is not carried"
            notes.append(role.part.note(message))
        first.replicas += role.replicas
    return found


def _env(task: Part, notes: list[Note]) -> dict[str, str]:
    env: dict[str, str] = {}
    for block in task.all("env"):
        for key, part in block.value.items() if isinstance(block.value, dict) else ():
            part.taken = True
            if (value := usable(key, part, notes)) is not None:
                env[key] = value
    return env


def usable(key: str, part: Part, notes: list[Note]) -> str | None:
    """The value of a variable that a Yurt job can set; what it cannot set is told."""
    if key == "TF_CONFIG":
        notes.append(part.note("is left out: Yurt writes TF_CONFIG for every task"))
    elif key.startswith("YURT_"):
        notes.append(part.note("is left out: Yurt sets such names itself"))
    elif not re.fullmatch(ENV_PATTERN, key):
        notes.append(part.note("is left out: it is no name for an environment variable"))
    elif isinstance(part.value, dict | list) or part.value is None:
        notes.append(part.note("is left out: its value is no text"))
    elif filled := re.search(r"\$\{[^}]*\}", text_of(part.value)):
        notes.append(part.note(f"is left out: Nomad fills in {filled[0]}, and Yurt does not"))
    else:
        return text_of(part.value)
    return None


def _whole(part: Part | None, default: int, what: str) -> int:
    if part is None:
        return default
    value = part.value
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise UsageError(f"{part.where}: {what} must be a whole number, not {value!r}")
    return value


def _cpus(resources: Part, mhz_per_cpu: int, notes: list[Note]) -> float | None:
    cores, mhz = resources.get("cores"), resources.get("cpu")
    if cores and _whole(cores, 0, "cores"):
        return float(cores.value)
    count = _whole(mhz, 0, "cpu")
    if mhz is None or count in (0, _DEFAULT_MHZ):
        return None
    cpus = round(count / mhz_per_cpu, 4) or 0.0001
    notes.append(
        mhz.note(f"is {count} MHz, taken as {counted_cpus(cpus)} at {mhz_per_cpu} MHz each (--mhz changes that)")
    )
    return cpus


def counted_cpus(cpus: float) -> str:
    """``1 CPU``, ``0.5 CPUs``."""
    return f"{cpus:g} CPU{'' if cpus == 1 else 's'}"


def _memory(resources: Part) -> int | None:
    mib = _whole(resources.get("memory"), 0, "memory")
    return mib * _MIB if mib not in (0, _DEFAULT_MIB) else None


def _gpus(resources: Part, notes: list[Note]) -> int | None:
    gpus = None
    for device in resources.all("device"):
        name, count = device.get("name"), device.get("count")
        words = str(name.value).split("/") if name else []
        if "gpu" not in words:
            notes.append(device.note(f"{'/'.join(words)} is no GPU: left out"))
            continue
        gpus = (gpus or 0) + _whole(count, 1, "count")
        if words not in (["gpu"], ["nvidia", "gpu"]):
            notes.append(device.note(f"{'/'.join(words)} is a kind of GPU; the count alone is carried"))
    return gpus


def _grace(task: Part, notes: list[Note]) -> float | None:
    part = task.get("kill_timeout")
    if part is None:
        return None
    grace = seconds(part.value)
    if grace is None:
        notes.append(part.note(f"is left out: {part.value!r} is no time"))
    return None if grace == _DEFAULT_GRACE_S else grace
