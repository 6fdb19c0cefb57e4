"""Looks whether a job could start, without starting anything."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from yurt.agent.looking import look
from yurt.agent.preflight import Preflight
from yurt.contract.config import AgentConfig
from yurt.contract.redact import HIDDEN
from yurt.contract.spec import RunSpec
from yurt.engines.base import Engine, Looks, Place
from yurt.engines.plan import plan
from yurt.errors import UsageError
from yurt.job import Job
from yurt.launcher.agent_zip import agent_zip
from yurt.launcher.files import folders_of_links, snapshot
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
    """What was found. `here`: the tasks would run on this machine; `looked`: their place was looked at."""

    spec: RunSpec
    engine: str
    here: bool
    looked: bool
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
        place = Place(Path(name), agent_zip(), "http://127.0.0.1:1", HIDDEN, linked=folders_of_links(files))
        request: Mapping[str, Any] = adapter.render(spec, place, options, adapter.facts(options))
        looked = here or isinstance(adapter, Looks)
        agents = {agent["task"]: agent for agent in request.get("agents", ())} if looked else {}
        roles = tuple(_role(adapter, spec, role, agents, str(files)) for role in _roles(spec))
    problem, hint = _output(spec)
    return Checked(
        spec=spec,
        engine=engine,
        here=here,
        looked=looked,
        files=count,
        roles=roles,
        output_problem=problem,
        output_hint=hint,
        notes=tuple(request.get("notes", ())),
    )


def _roles(spec: RunSpec) -> list[str]:
    return list(dict.fromkeys(task.role for task in spec.tasks))


def _role(
    adapter: Engine, spec: RunSpec, role: str, agents: Mapping[str, Mapping[str, Any]], folder: str
) -> CheckedRole:
    tasks = [task for task in spec.tasks if task.role == role]
    agent = agents.get(tasks[0].name)
    config = None if agent is None else AgentConfig.from_json(agent["config"])
    if agent is None or config is None:
        looked = Preflight()
    elif isinstance(adapter, Looks):
        looked = Preflight(**adapter.look(spec, agent))
    else:
        looked = look(config, folder)
    return CheckedRole(
        role=role,
        replicas=len(tasks),
        command=tasks[0].command,
        python=looked.python,
        found={name: value for name, value in looked.found.items() if name != "source"},
        cpus=len(config.cpus) if config and config.cpus is not None else None,
        threads=config.threads if config else None,
        notes=tuple(looked.notes),
        problem=looked.problem,
        hint=looked.hint,
    )


def _output(spec: RunSpec) -> tuple[str | None, str | None]:
    if spec.output is None:
        return None, None
    try:
        open_place(parse_output(spec.output), Limits(retry_timeout_s=_STORE_ANSWER_S)).check(0)
    except (StorageFailed, UsageError) as error:
        return str(error), error.hint
    return None, None
