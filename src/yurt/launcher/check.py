"""Looks whether a job could start, without starting anything."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from yurt.agent.environment import environment
from yurt.agent.preflight import Preflight, preflight
from yurt.contract.config import AgentConfig
from yurt.contract.redact import HIDDEN
from yurt.contract.spec import RunSpec
from yurt.contract.state import RunState
from yurt.engines.base import Place
from yurt.engines.plan import plan
from yurt.errors import UsageError
from yurt.job import Job
from yurt.launcher.files import snapshot
from yurt.launcher.start import engine_and_options, not_travelling
from yurt.storage.errors import StorageFailed
from yurt.storage.place import Limits, open_place
from yurt.storage.urls import parse_output

#: Seconds that an object store has for each answer: a person waits.
_STORE_ANSWER_S: Final = 10.0


@dataclass(frozen=True, slots=True)
class CheckedRole:
    """What a role's tasks would run. `found` holds versions by name; empty where this is no machine of the tasks."""

    role: str
    replicas: int
    command: tuple[str, ...] | None
    python: str | None = None
    found: Mapping[str, Any] = field(default_factory=dict)
    cpus: int | None = None
    threads: int | None = None
    notes: tuple[str, ...] = ()
    problem: str | None = None
    hint: str | None = None


@dataclass(frozen=True, slots=True)
class Checked:
    """What was found. `here` says whether the tasks would run on this machine, where they were looked at."""

    spec: RunSpec
    engine: str
    here: bool
    files: int
    roles: tuple[CheckedRole, ...]
    output_problem: str | None
    output_hint: str | None
    notes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing stands against a start."""
        return self.output_problem is None and all(role.problem is None for role in self.roles)


def check(job: Job, folder: Path, *, engine: str) -> Checked:
    """Render the run, look at each role as its agents would, try the output. Raises YurtError as a run would."""
    adapter, options = engine_and_options(job, engine)
    spec = plan(job, f"{job.name}-RUN", 0.0)
    here = not adapter.capabilities.machines and not adapter.capabilities.images
    with tempfile.TemporaryDirectory(prefix="yurt-check-") as name:
        files = Path(name) / "files"
        count = snapshot(folder, job.files, files, leave_out=not_travelling(job))
        place = Place(folder=Path(name), agent=Path(name) / "agent.pyz", store="http://127.0.0.1:1", token=HIDDEN)
        request: Mapping[str, Any] = adapter.render(spec, place, options, adapter.facts())
        configs = _configs(request) if here else {}
        roles = tuple(_role(spec, role, configs, str(files)) for role in dict.fromkeys(t.role for t in spec.tasks))
    problem, hint = _output(spec)
    return Checked(
        spec=spec,
        engine=engine,
        here=here,
        files=count,
        roles=roles,
        output_problem=problem,
        output_hint=hint,
        notes=tuple(request.get("notes", ())),
    )


def _configs(request: Mapping[str, Any]) -> dict[str, AgentConfig]:
    configs = (AgentConfig.from_json(agent["config"]) for agent in request.get("agents", ()))
    return {config.task: config for config in configs}


def _role(spec: RunSpec, role: str, configs: Mapping[str, AgentConfig], folder: str) -> CheckedRole:
    tasks = [task for task in spec.tasks if task.role == role]
    config = configs.get(tasks[0].name)
    looked = Preflight() if config is None else _look(spec, config, folder)
    return CheckedRole(
        role=role,
        replicas=len(tasks),
        command=tasks[0].command,
        python=looked.python,
        found={name: value for name, value in looked.found.items() if name != "source"},
        cpus=len(config.cpus) if config and config.cpus is not None else None,
        threads=config.threads if config else None,
        notes=looked.notes,
        problem=looked.problem,
        hint=looked.hint,
    )


def _look(spec: RunSpec, config: AgentConfig, folder: str) -> Preflight:
    task = spec.task(config.task)
    variables, _ = environment(config, RunState.first(0.0), "", os.environ)
    return preflight(spec, task, task.command or ("python", "-"), variables, folder)


def _output(spec: RunSpec) -> tuple[str | None, str | None]:
    if spec.output is None:
        return None, None
    try:
        open_place(parse_output(spec.output), Limits(retry_timeout_s=_STORE_ANSWER_S)).check(0)
    except (StorageFailed, UsageError) as error:
        return str(error), error.hint
    return None, None
