"""What must be true before a task's process is started; found out in another process, without TensorFlow's import."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from yurt.agent.foreign_source import probe_program
from yurt.agent.keras_choice import choose
from yurt.contract.placeholders import filled
from yurt.contract.spec import MLFLOW, RunSpec, TaskSpec

#: Packages that give a tracker, where there are several.
_TRACKER_PACKAGES: Final[Mapping[str, tuple[str, ...]]] = {MLFLOW: ("mlflow", "mlflow-skinny")}
_PYTHON_OPTIONS_WITH_VALUE: Final = ("-W", "-X", "--check-hash-based-pycs")


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was found: `problem` in one sentence with its `hint`, or what there is and what to tell."""

    problem: str | None = None
    hint: str | None = None
    notes: tuple[str, ...] = ()
    python: str | None = None
    found: Mapping[str, Any] = field(default_factory=dict)


def preflight(
    run: RunSpec, task: TaskSpec, command: Sequence[str], environment: Mapping[str, str], folder: str
) -> Preflight:
    """Look before the start: the command, the script, Python, TensorFlow and Keras, and which Keras the strategy needs.

    `command` is what will be executed in `folder` under `environment`, its placeholders not filled in yet. The deciding
    task looks for the packages of the job's trackers too.
    """
    command = filled(command, task)
    executable = shutil.which(command[0], path=_absolute_path(environment, folder))
    if executable is None and os.sep in command[0]:
        executable = shutil.which(os.path.join(folder, command[0]))
    if executable is None:
        return Preflight(
            problem=f"the command {command[0]!r} was not found on PATH or in the job's files",
            hint="name a program that the task's machine has, or a file that travels with the job",
        )
    if not os.path.basename(executable).startswith("python"):
        return Preflight()
    script = script_of(command)[0]
    if script is not None and not os.path.isfile(os.path.join(folder, script)):
        return Preflight(
            problem=f"the script {script!r} is not among the job's files",
            hint="give its path relative to the job file, and see that `files` holds it",
            python=executable,
        )
    # One Keras for all: the deciding task's script tells which.
    leader = next((each for each in run.tasks if each.name == run.deciding), None)
    deciding = filled(leader.command, leader) if leader and leader.command else None
    found, problem = _probe(executable, _source_file(deciding or command, folder), environment, folder)
    if problem:
        return Preflight(problem=problem, hint=f"try `{command[0]} -V` on that machine", python=executable)
    if task.name == run.deciding and (missing := missing_trackers(run.track, found.get("packages") or {})):
        return Preflight(
            problem=f"the job's `track` names {' and '.join(missing)}, and {executable} has no such package",
            hint=f"{executable} -m pip install {' '.join(missing)}",
            python=executable,
            found=found,
        )
    return _keras(run, task, found, executable, environment)


def missing_trackers(track: Sequence[str], packages: Mapping[str, str]) -> list[str]:
    """The trackers that no installed package gives; `packages` has versions by the names that pip knows."""
    return [name for name in track if not any(each in packages for each in _TRACKER_PACKAGES.get(name, (name,)))]


def _source_file(command: Sequence[str], folder: str) -> str:
    """The file that a Python command line starts with; empty where there is none to be read."""
    script, module = script_of(command)
    if script is not None:
        return os.path.join(folder, script)
    if module is None:
        return ""
    parts = os.path.join(folder, *module.split("."))
    return next((file for file in (f"{parts}.py", os.path.join(parts, "__main__.py")) if os.path.isfile(file)), "")


def script_of(command: Sequence[str]) -> tuple[str | None, str | None]:
    """The script or the module that a Python command line runs: (script, module), both None for ``-c`` and the like."""
    words = iter(command[1:])
    for word in words:
        if word == "-m":
            return None, next(words, None)
        if word in ("-c", "-"):
            return None, None
        if word in _PYTHON_OPTIONS_WITH_VALUE:
            next(words, None)
        elif not word.startswith("-"):
            return word, None
    return None, None


def _absolute_path(environment: Mapping[str, str], folder: str) -> str:
    path = environment.get("PATH", os.defpath)
    return os.pathsep.join(os.path.join(folder, part) for part in path.split(os.pathsep))


def _probe(python: str, script: str, environment: Mapping[str, str], folder: str) -> tuple[dict[str, Any], str | None]:
    try:
        result = subprocess.run(
            [python, "-c", probe_program(), script],
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=60,
            check=False,
        )
        found: dict[str, Any] = json.loads(result.stdout.splitlines()[-1])
    except subprocess.TimeoutExpired:
        return {}, f"{python} did not answer within 60 s"
    except (OSError, ValueError, IndexError) as error:
        return {}, f"{python} does not run: {error}"
    return found, None


def _keras(
    run: RunSpec, task: TaskSpec, found: Mapping[str, Any], python: str, environment: Mapping[str, str]
) -> Preflight:
    if found.get("tensorflow") is None and task.command is None:
        return Preflight(
            problem=f"{python} has no TensorFlow, which the standard server needs",
            hint=f"{python} -m pip install tensorflow",
            python=python,
        )
    choice = choose(run, task, found, environment)
    return Preflight(problem=choice.problem, hint=choice.hint, notes=choice.notes, python=python, found=found)
