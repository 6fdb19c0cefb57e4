"""What several verbs share: their arguments, and the reading of the job file."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from yurt.cli.completing import complete_engine, complete_run, complete_task
from yurt.cli.tfjob_file import NO_CHOICES, Choices, tfjob
from yurt.errors import UsageError

if TYPE_CHECKING:
    from yurt.job import LoadedJob

JOB_FILE: Final = click.argument("job_file", metavar="JOB.yaml", type=click.Path(path_type=Path))
ENGINE: Final = click.option(
    "--on",
    "engine",
    default="local",
    metavar="ENGINE",
    shell_complete=complete_engine,
    help="Where; local unless said.",
)
RUN: Final = click.argument("run_id", metavar="[RUN]", required=False, shell_complete=complete_run)
ONE_RUN: Final = click.argument("run_id", metavar="RUN", shell_complete=complete_run)
TASK: Final = click.argument("task", metavar="[TASK]", required=False, shell_complete=complete_task)
JSON: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_KUBERNETES: Final = "kubernetes"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def load(
    path: Path, variables: tuple[str, ...] = (), *, engine: str = "local", choices: Choices = NO_CHOICES
) -> LoadedJob:
    """The job of a job file or of a TFJob's, with the command line's variables over its own. Raises YurtError.

    A TFJob is read for `engine`.
    """
    from yurt.engines import registry
    from yurt.job import load_job

    options = registry.all_options()
    given = frozenset(text.partition("=")[0] for text in variables)
    loaded = tfjob(path, engine, choices, given, options)
    if loaded is None:
        choices.need_tfjob(path)
        loaded = load_job(path, engine_options=options)
    loaded = with_variables(loaded, variables) if variables else loaded
    return with_operator(loaded, choices.operator, engine) if choices.operator else loaded


def with_operator(loaded: LoadedJob, operator: str, engine: str) -> LoadedJob:
    """The job with its way on Kubernetes. Raises UsageError on another engine."""
    from dataclasses import replace

    from yurt.job import Job

    if engine != _KUBERNETES:
        raise UsageError(f"--operator {operator} is for runs on Kubernetes", hint="add --on kubernetes")
    written: dict[str, Any] = loaded.job.as_file()
    engines = written.setdefault("engines", {})
    engines[_KUBERNETES] = {**engines.get(_KUBERNETES, {}), "operator": operator}
    return replace(loaded, job=Job(**written))


def with_variables(loaded: LoadedJob, variables: tuple[str, ...]) -> LoadedJob:
    """The job with more environment variables, which win over the job's and its roles' own."""
    from dataclasses import replace

    from yurt.job import Job

    given = dict(_variable(text) for text in variables)
    written: dict[str, Any] = loaded.job.as_file()
    written["env"] = {**written.get("env", {}), **given}
    for role in written.get("roles", {}).values():
        if isinstance(role, dict) and "env" in role:
            role["env"] = {**role["env"], **given}
    return replace(loaded, job=Job(**written))


def _variable(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not _NAME.fullmatch(name):
        raise UsageError(f"--env {name!r} names no environment variable", hint="write NAME=VALUE, or NAME alone")
    if equals:
        return name, value
    if name not in os.environ:
        raise UsageError(f"--env {name}: there is no such variable here", hint=f"write {name}=VALUE")
    return name, os.environ[name]
