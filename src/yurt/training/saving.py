"""``save``: the finished model into the run's model folder, whole, once, however many workers call it."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from yurt.contract.spec import EVALUATOR
from yurt.training.errors import TrainingError
from yurt.training.folders import model_dir
from yurt.training.mending import part
from yurt.training.place import Place, place

_WEIGHTS: Final = ".weights.h5"
_FILES: Final = (".keras", ".h5")
_MISSING_TASK = re.compile(r"/job:(\w+)/replica:0/task:(\d+)")

_saves = 0  # in this process: all workers count alike, since all call


def save(model: Any, name: str = "model.keras", *, wait_s: float = 300.0) -> Path | None:
    """Put `model` into the folder that the run publishes (YURT_MODEL_DIR, else ``./model``), under `name`.

    By its ending: ``.keras`` or ``.h5`` the model, ``.weights.h5`` its weights, any other a SavedModel folder for
    serving. What stands there is replaced by rename, so nobody ever sees half of it.

    All workers call this; the leader's (chief, else worker 0) is kept and its path returned, others get None. Under
    MultiWorkerMirroredStrategy it takes all of them for a tf_keras model, for a tf.Module, and for a Keras 3 model with
    BatchNormalization, whose averages each worker has for itself: there each waits up to `wait_s` seconds for the
    others. Under ParameterServerStrategy the chief is the one that runs the script. Raises TrainingError.
    """
    target = _target(name)
    here = place()
    strategy = getattr(model, "distribute_strategy", None)
    collective = strategy is not None and part("_yurt_task").multi_worker(strategy)
    averages = list(part("_yurt_multi_worker").averages(model)) if collective and _is_keras3(model) else []
    together = collective and (bool(averages) or not _is_keras3(model))
    if together:
        _meet(here, wait_s)
    if averages:
        part("_yurt_multi_worker").add_up(strategy, "MEAN", averages)
    if here.leads or here.role == EVALUATOR:
        write_whole(model, target)
        return target
    if together and not averages:  # reading its variables takes all workers
        with _scratch() as folder:
            _writer(model, target.name)(folder / target.name)
    return None


def write_whole(model: Any, target: Path) -> None:
    """Write the model beside its path, flush it to the disk, and rename."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f".{os.uname().nodename}-{os.getpid()}.{target.name}")
    try:
        _writer(model, target.name)(beside)
        for file in [beside] if beside.is_file() else beside.rglob("*"):
            _flush(file)
        _put(beside, target)
    finally:
        _remove(beside)


def _target(name: str) -> Path:
    relative = Path(name)
    if not name or relative.is_absolute() or ".." in relative.parts or relative == Path():
        raise TrainingError(
            f"save needs a name inside the model folder, and not {name!r}",
            hint='such as "model.keras"; the folder is the run\'s, or ./model',
        )
    return model_dir() / relative


def _is_keras3(model: Any) -> bool:
    return any(cls.__module__.partition(".")[0] == "keras" for cls in type(model).__mro__)


def _is_tf_keras(model: Any) -> bool:
    return any(cls.__module__.partition(".")[0] == "tf_keras" for cls in type(model).__mro__)


def _writer(model: Any, name: str) -> Callable[[Path], None]:
    """What writes this model under such a name."""
    if name.endswith((*_FILES, _WEIGHTS)):
        if not (_is_keras3(model) or _is_tf_keras(model)):
            raise TrainingError(f"{name} is a file of Keras, and {type(model).__name__} is no Keras model")
        if name.endswith(_WEIGHTS):
            return lambda path: model.save_weights(str(path))
        return lambda path: model.save(str(path))
    if _is_keras3(model):
        return lambda path: model.export(str(path), verbose=False)
    if _is_tf_keras(model):
        return lambda path: model.export(str(path))
    import tensorflow as tf

    if not isinstance(model, tf.Module):
        raise TrainingError(f"{type(model).__name__} cannot be saved", hint="a Keras model, or a tf.Module")
    return lambda path: tf.saved_model.save(model, str(path))


def _meet(here: Place, wait_s: float) -> None:
    """Wait until all workers are here, so that a call on one alone ends with a sentence and not never.

    The coordination service of TensorFlow 2.21 has a barrier with a time limit, and no public name for it. Where there
    is none, TensorFlow's own collective waits, without a limit.
    """
    global _saves  # noqa: PLW0603 - each barrier has a name of its own
    _saves += 1
    from tensorflow.errors import DeadlineExceededError
    from tensorflow.python.eager import context

    barrier = getattr(context.context(), "wait_at_barrier", None)
    if barrier is None or getattr(context.context(), "coordination_service", None) is None:
        return
    try:
        barrier(f"yurt/save/{_saves}", int(wait_s * 1000))
    except DeadlineExceededError as error:
        missing = sorted({f"{role}/{index}" for role, index in _MISSING_TASK.findall(str(error))} - {here.task})
        raise TrainingError(
            f"{' and '.join(missing) or 'another worker'} did not call training.save within {wait_s:g} s",
            hint="saving this model takes all workers: call it on all of them, not under `if`",
        ) from None


@contextmanager
def _scratch() -> Iterator[Path]:
    folder = tempfile.mkdtemp(prefix="yurt-save-")
    try:
        yield Path(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _put(beside: Path, target: Path) -> None:
    """Rename; a folder does not replace one that is not empty, so that is moved away first."""
    if not target.is_dir() or target.is_symlink():
        if beside.is_dir():
            target.unlink(missing_ok=True)
        beside.replace(target)
        return
    old = target.with_name(f"{beside.name}.old")
    target.replace(old)
    beside.replace(target)
    _remove(old)


def _flush(path: Path) -> None:
    if path.is_file():
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
