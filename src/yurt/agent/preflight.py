"""What must be true before a task's process is started; found out in another process, without TensorFlow's import."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from yurt.agent.foreign_source import source
from yurt.contract.spec import MULTI_WORKER, PARAMETER_SERVER, RunSpec, TaskSpec

_PYTHON_OPTIONS_WITH_VALUE: Final = ("-W", "-X", "--check-hash-based-pycs")


@dataclass(frozen=True, slots=True)
class Preflight:
    """What was found: `problem` in one sentence with its `hint`, or what to set and what to tell."""

    problem: str | None = None
    hint: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    python: str | None = None
    found: Mapping[str, Any] = field(default_factory=dict)


def preflight(
    run: RunSpec, task: TaskSpec, command: Sequence[str], environment: Mapping[str, str], folder: str
) -> Preflight:
    """Look before the start: the command, the script, Python, TensorFlow and Keras, and which Keras the strategy needs.

    `command` is what will be executed in `folder` under `environment`.
    """
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
    script, module = script_of(command)
    if script is not None and not os.path.isfile(os.path.join(folder, script)):
        return Preflight(
            problem=f"the script {script!r} is not among the job's files",
            hint="give its path relative to the job file, and see that `files` holds it",
            python=executable,
        )
    if script is not None:
        script = os.path.join(folder, script)
    elif module is not None:
        parts = os.path.join(folder, *module.split("."))
        script = next(
            (file for file in (f"{parts}.py", os.path.join(parts, "__main__.py")) if os.path.isfile(file)), ""
        )
    found, problem = _probe(executable, script or "", environment, folder)
    if problem:
        return Preflight(problem=problem, hint=f"try `{command[0]} -V` on that machine", python=executable)
    return _keras(run, task, found, executable, environment, script or "")


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
            [python, "-c", source("probe.py").decode(), script],
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
    run: RunSpec,
    task: TaskSpec,
    found: Mapping[str, Any],
    python: str,
    environment: Mapping[str, str],
    script: str,
) -> Preflight:
    """Keras 3's `fit` fails under these two strategies (TensorFlow 2.21, Keras 3.15); legacy Keras works."""
    plain = Preflight(python=python, found=found)
    facts: Mapping[str, Any] = found.get("source") or {}
    distributed = run.strategy == PARAMETER_SERVER or (run.strategy == MULTI_WORKER and len(run.training) > 1)
    if found.get("tensorflow") is None:
        if task.command is None:
            return Preflight(
                problem=f"{python} has no TensorFlow, which the standard server needs",
                hint=f"{python} -m pip install tensorflow",
                python=python,
            )
        return plain  # the command may train with something else, or bring TensorFlow by other ways
    major = str(found.get("keras") or "0").split(".", maxsplit=1)[0]
    if not distributed or int(major if major.isdigit() else 0) < 3 or "TF_USE_LEGACY_KERAS" in environment:
        return plain
    why = f"Keras {found['keras']} cannot `fit` under {run.strategy}"
    where = os.path.basename(script)
    if facts.get("fits") and facts.get("imports_keras") and not facts.get("imports_tf_keras"):
        return Preflight(
            problem=f"{why}, and {where}:{facts['imports_keras']} imports keras itself",
            hint="write `from tensorflow import keras`: Yurt then has it use legacy Keras (tf_keras)",
            python=python,
        )
    if found.get("tf_keras") is None:
        if not facts.get("fits"):
            return plain
        return Preflight(
            problem=f"{why} ({where}:{facts['fits']}), and legacy Keras is not installed",
            hint=f"{python} -m pip install tf_keras~={'.'.join(found['tensorflow'].split('.')[:2])}.0",
            python=python,
        )
    note = f"{why}: tf.keras is legacy Keras {found['tf_keras']} in this run (TF_USE_LEGACY_KERAS=1)"
    return Preflight(environment={"TF_USE_LEGACY_KERAS": "1"}, notes=(note,), python=python, found=found)
