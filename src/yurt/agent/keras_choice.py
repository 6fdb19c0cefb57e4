"""Chooses the Keras that a task's script gets: Keras 3 as it is, mended, or legacy Keras. Pure; see docs/keras.md.

The choice follows from the run, from what is installed where the task runs, and from the source of the deciding task's
script, so that all tasks of a gang choose alike.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from yurt.agent.foreign_source import hook_source
from yurt.contract.spec import (
    EVALUATOR,
    KERAS_AUTO,
    KERAS_LEGACY,
    KERAS_OFF,
    MULTI_WORKER,
    PARAMETER_SERVER,
    RunSpec,
    TaskSpec,
)

#: The variable that makes `tf.keras` legacy Keras, and what the hook is told by.
USE_LEGACY: Final = "TF_USE_LEGACY_KERAS"
MENDS: Final = "YURT_HOOK_MENDS"
MANNERS: Final = "YURT_HOOK_MANNERS"
ALIAS: Final = "YURT_HOOK_ALIAS"
#: Only saving to any path: what a script saves last must not be lost to the ending of its name.
_SAVING: Final = {MANNERS: "saving"}


@dataclass(frozen=True, slots=True)
class KerasChoice:
    """`problem` in one sentence with its `hint`; or variables, what to tell, and whether the hook comes along.

    `may_turn` says that another try with legacy Keras is possible if the script turns out to need it.
    """

    problem: str | None = None
    hint: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    hook: bool = True
    may_turn: bool = False


def proven() -> tuple[str, ...]:
    """The versions of Keras 3 that the mends were proven with, read from the hook's own table."""
    return tuple(re.findall(r'^    "(\d+\.\d+)":', hook_source("_yurt_proven.py").decode(), re.MULTILINE))


def choose(
    run: RunSpec, task: TaskSpec, found: Mapping[str, Any], environment: Mapping[str, str], *, again: bool = False
) -> KerasChoice:
    """The Keras for this task.

    `found` is what the probe found; `again` says that the run has turned to legacy Keras.
    """
    choice = _chosen(run, task, found, environment, again=again)
    where = _source(found, "tensorboard")
    if where is None or choice.problem is not None or found.get("tensorboard", "") is not None:
        return choice
    python = found.get("executable") or "python"
    note = f"{where} writes for TensorBoard, which is not installed: {python} -m pip install tensorboard"
    return replace(choice, notes=(*choice.notes, note))


def _chosen(
    run: RunSpec, task: TaskSpec, found: Mapping[str, Any], environment: Mapping[str, str], *, again: bool
) -> KerasChoice:
    if run.keras == KERAS_OFF or task.command is None:
        return KerasChoice(hook=False)
    if again:
        return _legacy(found, "what the script asked for when it ran first")
    version = str(found.get("keras") or "")
    if USE_LEGACY in environment or not found.get("tensorflow") or _major(version) < 3:
        return KerasChoice()  # somebody has chosen already, or there is nothing to choose
    if run.keras == KERAS_LEGACY:
        return _legacy(found, "as the job says")
    many = run.strategy == PARAMETER_SERVER or (run.strategy == MULTI_WORKER and len(run.training) > 1)
    may_turn = run.keras == KERAS_AUTO and found.get("tf_keras") is not None and task.role != EVALUATOR
    if not many:
        return KerasChoice(may_turn=may_turn)
    if run.keras == KERAS_AUTO:
        return _automatic(run, task, found, version, may_turn=may_turn)
    if (obstacle := _obstacle(task, version)) is not None:
        return KerasChoice(problem=obstacle, hint=_fix(found))
    if keras2 := _source(found, "keras2"):
        return KerasChoice(environment={MANNERS: "1"}, notes=(_with_manners(version, keras2[0], found),))
    return KerasChoice(notes=(f"Keras {version}, mended for {run.strategy}, as the job says",))


def _automatic(run: RunSpec, task: TaskSpec, found: Mapping[str, Any], version: str, *, may_turn: bool) -> KerasChoice:
    if gone := _source(found, "gone"):
        where, what = gone[0][:2]
        hint = "bring the script up to TensorFlow 2, or install the TensorFlow it was written for"
        return KerasChoice(
            problem=f"{where} uses {what}, which TensorFlow {found['tensorflow']} has no more", hint=hint
        )
    if asked := _asks_for_legacy(found):
        return _legacy(found, asked, alias=False)
    keras2, keras3 = _source(found, "keras2"), _source(found, "keras3")
    obstacle = _obstacle(task, version)
    if obstacle is None and not keras2:
        return KerasChoice(
            environment=_SAVING, notes=(f"Keras {version}, mended for {run.strategy}",), may_turn=may_turn
        )
    if obstacle is None and keras3:
        where, what, _ = keras2[0]
        note = f"Keras {version}, mended, taking what Keras 2 took ({where}: {what}), since {keras3} needs Keras 3"
        return KerasChoice(environment={MANNERS: "1"}, notes=(note,))
    why = obstacle or "{}: {}".format(*keras2[0][:2])
    if found.get("tf_keras") is not None:
        return _legacy(found, why)
    if obstacle is None and all(manners for _, _, manners in keras2):
        return KerasChoice(environment={MANNERS: "1"}, notes=(_with_manners(version, keras2[0], found),))
    if not _source(found, "fits"):
        return KerasChoice()  # loops of its own, or a source that cannot be read: Keras as it is may do
    return KerasChoice(problem=f"this job needs legacy Keras ({why}), which is not installed", hint=_fix(found))


def _asks_for_legacy(found: Mapping[str, Any]) -> str | None:
    """Where the script itself asks for legacy Keras."""
    where, wants = _source(found, "wants_legacy") or ("", False)
    if wants:
        return f"{where} sets {USE_LEGACY}"
    where = _source(found, "imports_tf_keras")
    return f"{where} imports it" if where and not _source(found, "imports_keras") else None


def _legacy(found: Mapping[str, Any], why: str, *, alias: bool = True) -> KerasChoice:
    version = found.get("tf_keras")
    if found and version is None:
        return KerasChoice(problem=f"legacy Keras is not installed ({why})", hint=_fix(found))
    note = f"legacy Keras {version or ''}".strip() + f" ({USE_LEGACY}=1): {why}"
    return KerasChoice(environment={USE_LEGACY: "1", **({} if alias else {ALIAS: "0"})}, notes=(note,))


def _obstacle(task: TaskSpec, version: str) -> str | None:
    """Why the mends cannot be used."""
    if ".".join(version.split(".")[:2]) not in (versions := proven()):
        return f"Keras {version} is none of those that Yurt's mends are proven with ({', '.join(versions)})"
    if option := _isolating(task.command or ()):
        return f"with Python's option {option} Yurt cannot mend Keras {version}"
    return None


def _isolating(command: tuple[str, ...]) -> str | None:
    """The option of a Python command line that keeps PYTHONPATH or sitecustomize out."""
    for word in command[1:]:
        if not word.startswith("-") or word in ("-m", "-c", "-"):
            return None
        if not word.startswith("--") and set(word[1:]) & set("IES") and word[1] not in "WXQ":
            return word
    return None


def _source(found: Mapping[str, Any], name: str) -> Any:
    return (found.get("source") or {}).get(name)


def _with_manners(version: str, keras2: tuple[str, str, bool], found: Mapping[str, Any]) -> str:
    where, what, _ = keras2
    return f"Keras {version}, mended, taking what Keras 2 took ({where}: {what}); better: {_fix(found)}"


def _fix(found: Mapping[str, Any]) -> str:
    series = ".".join(str(found.get("tensorflow")).split(".")[:2])
    return f"{found.get('executable') or 'python'} -m pip install tf_keras~={series}.0"


def _major(version: str) -> int:
    major = version.split(".", maxsplit=1)[0]
    return int(major) if major.isdigit() else 0
