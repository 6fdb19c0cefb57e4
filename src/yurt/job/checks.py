"""What must fit together: roles with one another, with the strategy, and with the commands.

The checks look at a `Shape`: as much of the job as can be read, even where other fields are wrong.
So a misspelt key does not hide that there are two chiefs, nor the other way round.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from yurt.job.fields import read_replicas, read_yes_no
from yurt.job.findings import Finding, Loc
from yurt.job.kinds import ONE_TASK_STRATEGIES, RoleName, Strategy
from yurt.job.names import guess_role, read_choice
from yurt.job.written import bare


@dataclass(frozen=True, slots=True)
class RoleShape:
    """What could be read of one role; None stands for what could not."""

    at: Loc
    replicas: int | None
    has_command: bool
    standard_server: bool | None

    @property
    def present(self) -> bool:
        """Whether the role has tasks, as far as one can tell."""
        return self.replicas != 0


@dataclass(frozen=True, slots=True)
class Shape:
    """What could be read of a job, enough to check that its parts fit."""

    roles: dict[RoleName, RoleShape]
    whole: bool
    """False if a role could not be made out: then nothing is said to be absent."""
    roles_at: Loc
    strategy: Strategy | None
    """What is written, or what follows from the roles; None if it cannot be read."""
    strategy_written: bool
    has_command: bool

    def count(self, *names: RoleName) -> int:
        """The tasks of these roles; a count that cannot be read is taken as 0."""
        return sum(self.roles[name].replicas or 0 for name in names if name in self.roles)

    def has(self, name: RoleName) -> bool:
        """Whether the role has tasks, as far as one can tell."""
        return name in self.roles and self.roles[name].present


CHIEF, WORKER, PS, EVALUATOR = RoleName


def shape_of(job: Mapping[str, Any]) -> Shape:
    """The shape of a job as it is written, mistakes included."""
    roles, whole = _roles(job["roles"]) if "roles" in job else ({WORKER: RoleShape((), 1, False, False)}, True)
    raw = job.get("strategy")
    written = bare(raw) is not None
    strategy: Strategy | None
    try:
        strategy = read_choice(raw, Strategy) if written else default_strategy(roles)
    except ValueError:
        strategy = None
    has_command = bare(job.get("command")) is not None
    roles_at: Loc = ("roles",) if "roles" in job or not written else ("strategy",)
    return Shape(roles, whole, roles_at, strategy, written, has_command)


def default_strategy(roles: Mapping[RoleName, RoleShape]) -> Strategy:
    """The strategy of a job that names none."""
    if PS in roles and roles[PS].present:
        return Strategy.PARAMETER_SERVER
    training = sum(roles[name].replicas or 0 for name in (CHIEF, WORKER) if name in roles)
    return Strategy.MULTI_WORKER_MIRRORED if training > 1 else Strategy.NONE


def _roles(raw: Any) -> tuple[dict[RoleName, RoleShape], bool]:
    roles: dict[RoleName, RoleShape] = {}
    if not isinstance(raw, Mapping):
        return roles, False
    whole = True
    for key, value in raw.items():
        name = guess_role(key) if isinstance(key, str) else None
        if name is None:
            whole = False
        elif name not in roles or key == name:
            roles[name] = _role(("roles", key), value)
    return roles, whole


def _role(at: Loc, raw: Any) -> RoleShape:
    if not isinstance(raw, Mapping):
        part = {name: getattr(raw, name) for name in ("replicas", "command", "standard_server") if hasattr(raw, name)}
        raw = part or {"replicas": raw}
    replicas: int | None
    standard: bool | None
    try:
        replicas = read_replicas(raw["replicas"]) if "replicas" in raw else 1
    except ValueError:
        replicas = None
    try:
        standard = read_yes_no(raw.get("standard_server", False))
    except ValueError:
        standard = None
    return RoleShape(at, replicas, bare(raw.get("command")) is not None, standard)


def cross_checks(shape: Shape) -> list[Finding]:
    """Every way in which the parts of a job do not fit."""
    if shape.whole and not any(role.present for role in shape.roles.values()):
        return [Finding(shape.roles_at, "has no replicas at all, so nothing would run", "add `worker: 1`")]
    training = [name for name in (CHIEF, WORKER, PS) if shape.has(name)]
    findings = [*_too_many(shape), *_commands(shape), *_standard_servers(shape)]
    if shape.whole and not training:
        message = "has an evaluator alone, and nothing that it could evaluate"
        findings.append(Finding(shape.roles_at, message, "add `worker: 1`"))
    elif shape.strategy is Strategy.PARAMETER_SERVER:
        findings += _parameter_server(shape)
    else:
        findings += _without_parameter_server(shape)
    return findings


def _too_many(shape: Shape) -> list[Finding]:
    findings = []
    hints = {
        CHIEF: "write `chief: 1` and count the others as worker",
        EVALUATOR: "write `evaluator: 1`",
    }
    for name, hint in hints.items():
        count = shape.count(name)
        if count > 1:
            findings.append(Finding(shape.roles[name].at, f"can have one replica, not {count}", hint))
    return findings


def _commands(shape: Shape) -> list[Finding]:
    if shape.has_command:
        return []
    idle = [
        name
        for name, role in sorted(shape.roles.items(), key=lambda item: list(RoleName).index(item[0]))
        if role.present and not role.has_command and role.standard_server is False
    ]
    if not idle:
        return []
    message = f"is missing, and {' and '.join(idle)} {'has' if len(idle) == 1 else 'have'} no own command"
    return [Finding(("command",), message, "add a line such as `command: python train.py`")]


def _standard_servers(shape: Shape) -> list[Finding]:
    findings = []
    for name, role in shape.roles.items():
        if not role.standard_server or not role.present:
            continue
        at = (*role.at, "standard_server")
        if name in (CHIEF, EVALUATOR):
            message = f"is for ps and worker; {name} runs your script"
            findings.append(Finding(at, message, "remove it, and give the role a command if it needs its own"))
        elif name is WORKER and shape.strategy not in (None, Strategy.PARAMETER_SERVER):
            message = f"is for a worker under parameter-server, and the strategy is {shape.strategy}"
            findings.append(Finding(at, message, "remove it: such a worker runs your script"))
    return findings


def _parameter_server(shape: Shape) -> list[Finding]:
    findings: list[Finding] = []
    if not shape.whole:
        return findings
    if not shape.has(PS):
        message = "is parameter-server, and no role is a ps to hold the variables"
        findings.append(Finding(("strategy",), message, "add `ps: 1`, or choose multi-worker-mirrored"))
    if not shape.has(CHIEF):
        message = "needs a chief under parameter-server: it runs the training loop"
        findings.append(Finding(shape.roles_at, message, "add `chief: 1`"))
    if not shape.has(WORKER):
        at = shape.roles[PS].at if shape.has(PS) else shape.roles_at
        findings.append(_ps_without_workers(at) if shape.has(PS) else _no_workers(at))
    return findings


def _ps_without_workers(at: Loc) -> Finding:
    return Finding(at, "has no workers to serve", "add `worker: 2`")


def _no_workers(at: Loc) -> Finding:
    return Finding(at, "needs workers under parameter-server: they compute the steps", "add `worker: 2`")


def _without_parameter_server(shape: Shape) -> list[Finding]:
    findings = []
    strategy = shape.strategy
    if shape.has(PS) and strategy is not None:
        message = f"is a role that {strategy} does not know"
        hint = "remove it, or write `strategy: parameter-server`"
        findings.append(Finding(shape.roles[PS].at, message, hint))
    elif shape.has(PS) and shape.whole and not shape.has(WORKER):
        findings.append(_ps_without_workers(shape.roles[PS].at))
    training = shape.count(CHIEF, WORKER)
    if strategy in ONE_TASK_STRATEGIES and training > 1:
        message = f"is {strategy}, which trains in one task, and chief and worker together make {training}"
        findings.append(Finding(("strategy",), message, "write multi-worker-mirrored, or leave one task"))
    return findings
