"""``Evaluator``: follows a training by its checkpoints, evaluates each once, and keeps the best."""

from __future__ import annotations

import difflib
import json
import math
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np

from yurt.contract import names
from yurt.training import evaluations, kept
from yurt.training.errors import TrainingError
from yurt.training.evaluations import Evaluated, Mode
from yurt.training.folders import checkpoint_dir
from yurt.training.saving import write_whole
from yurt.training.saying import say
from yurt.training.variables import model_variables, restore

#: Seconds between two looks into the folder.
_EVERY_S: Final = 0.5

_Arrays = Mapping[str, np.ndarray[Any, Any]]


class Evaluator:
    """Evaluates `model` on `data` with the weights of each checkpoint at the end of an epoch, as they come.

    `model` is compiled and built; its own weights do not matter. `data` is a `yurt.data.Data`, a tf.data.Dataset that
    ends, arrays ``(x, y)`` or what else `model.evaluate` takes; `steps` bounds one that does not end. `folder` is that
    of the checkpoints (YURT_CHECKPOINT_DIR, else ``checkpoints``), which `Checkpoint` or `Loop` writes under any
    strategy; `part` is what `Loop` calls the model.

    Metrics are printed, written to the run's progress, and appended to ``evaluations.jsonl`` in the folder, so that an
    evaluator that is started again evaluates none twice. `best` is the metric (None: none) by which the best checkpoint
    stays as ``best.npz`` there; `mode` is "min", "max" or, by the metric's name, "auto". `best_model` is a path where
    the whole model is saved each time it is better. `name` keeps several evaluators of one folder apart:
    ``evaluations-NAME.jsonl``, ``best-NAME.npz``. `timeout_s` is how long to wait for the next checkpoint.
    """

    def __init__(
        self,
        model: Any,
        data: Any,
        *,
        folder: Path | str | None = None,
        best: str | None = "loss",
        mode: Mode = "auto",
        best_model: Path | str | None = None,
        name: str | None = None,
        part: str = "model",
        steps: int | None = None,
        timeout_s: float | None = None,
    ) -> None:
        if mode not in ("auto", "min", "max"):
            raise TrainingError(f"mode={mode!r} is unknown", hint="auto, min or max")
        self._model = model
        self._arguments = _arguments(data, steps)
        self._folder = checkpoint_dir() if folder is None else Path(folder)
        self._best, self._mode = best, mode
        self._best_model = None if best_model is None else Path(best_model)
        ending = f"-{name}" if name else ""
        self._file = self._folder / f"evaluations{ending}.jsonl"
        self._best_file = self._folder / f"best{ending}.npz"
        self._part = part
        self._timeout_s = timeout_s
        self._found: list[Evaluated] = []
        self._weights: _Arrays = {}  # of the last one evaluated here
        self._missed: set[int] = set()

    def run(self) -> list[Evaluated]:
        """Until the checkpoint that ends the training has been evaluated; all evaluations, earlier starts' too.

        Raises TrainingError where a checkpoint is of another model, where there is no metric `best`, and after
        `timeout_s` seconds without a new checkpoint.
        """
        self._found = evaluations.read(self._file)
        self._missed = set(range(1, max((each.epoch for each in self._found), default=0)))
        self._missed -= {each.epoch for each in self._found}
        waiting_since = time.monotonic()
        while True:
            ends = [each for each in kept.listed(self._folder) if each.boundary or each.final]
            done = {each.at for each in self._found}
            new = [each for each in ends if each.at not in done]
            self._tell_missed({each.epoch for each in ends} | {each.epoch for each in self._found})
            if not new and ends and ends[-1].final:
                return self._found
            if new:
                self._one(_next(new))
                waiting_since = time.monotonic()
                continue
            if self._timeout_s is not None and time.monotonic() - waiting_since > self._timeout_s:
                raise TrainingError(f"{self._folder}: no new checkpoint came within {self._timeout_s:g} s")
            time.sleep(_EVERY_S)

    def _one(self, checkpoint: kept.Kept) -> None:
        """Evaluate a checkpoint, which may be removed meanwhile by whoever writes them."""
        own = self._best_file.with_name(f".{self._best_file.name}.{os.getpid()}")
        if not _link(checkpoint.path, own):
            return
        try:
            metadata, variables = kept.read(own)
            weights = {name: value for name, value in variables.items() if name.startswith(f"{self._part}/")}
            if self._is_the_last(checkpoint, weights):
                metrics = self._found[-1].metrics  # the end of the last epoch and of the training
            else:
                variables_here = model_variables(self._model, optimizer=False, group=self._part)
                restore(variables_here, weights, metadata.get("dtypes"))
                answer = self._model.evaluate(**self._arguments, verbose=0, return_dict=True)
                metrics = {name: float(value) for name, value in answer.items()}
            found = Evaluated(checkpoint.epoch, checkpoint.steps_done, metrics, checkpoint.final, checkpoint.at)
            better = self._is_better(found)
            if better and self._best_model is not None:
                write_whole(self._model, self._best_model)
            if better:
                own.replace(self._best_file)
            evaluations.append(self._file, found)
            self._found.append(found)
            self._weights = weights
            self._tell(found, better=better, epochs=metadata.get("epochs"))
        finally:
            own.unlink(missing_ok=True)

    def _is_the_last(self, checkpoint: kept.Kept, weights: _Arrays) -> bool:
        """Whether this has the weights that were evaluated last; a callback may have changed them at the end."""
        if not self._found or self._found[-1].step != checkpoint.steps_done or not self._weights:
            return False
        return weights.keys() == self._weights.keys() and all(
            np.array_equal(value, self._weights[name]) for name, value in weights.items()
        )

    def _is_better(self, found: Evaluated) -> bool:
        if self._best is None:
            return False
        if self._best not in found.metrics:
            near = difflib.get_close_matches(self._best, found.metrics, n=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(found.metrics)}"
            raise TrainingError(f"the model has no metric {self._best!r}", hint=hint)
        return evaluations.best([*self._found, found], self._best, self._mode) is found

    def _tell_missed(self, there: set[int]) -> None:
        """Say which epochs are gone; `there` are those evaluated and those still to be."""
        if missed := sorted(set(range(1, max(there, default=0))) - there - self._missed):
            self._missed |= set(missed)
            say(f"checkpoints were removed before they could be evaluated: epoch {_in_words(missed)}")

    def _tell(self, found: Evaluated, *, better: bool, epochs: int | None) -> None:
        after = "at the end" if found.final else f"after epoch {found.epoch}"
        values = ", ".join(f"{name} {value:.4g}" for name, value in found.metrics.items())
        print(f"evaluated {after}: {values}{', the best so far' if better else ''}", flush=True)
        if path := os.environ.get(names.PROGRESS_FILE):
            metrics = {name: value for name, value in found.metrics.items() if math.isfinite(value)}
            progress: dict[str, Any] = {"epoch": found.epoch, **({"epochs": epochs} if epochs else {})}
            if "loss" in metrics:
                progress["loss"] = metrics.pop("loss")
            part = Path(f"{path}.{os.getpid()}.part")
            part.write_text(json.dumps({**progress, "metrics": metrics}), encoding="utf-8")
            part.replace(path)


def _arguments(data: Any, steps: int | None) -> dict[str, Any]:
    """What `model.evaluate` is called with."""
    if hasattr(data, "for_fit") and hasattr(data, "steps"):  # yurt.data.Data, which needs not be installed
        return {"x": data.for_fit(), "steps": steps or data.steps}
    if isinstance(data, (tuple, list)):
        return {**dict(zip(("x", "y", "sample_weight"), data, strict=False)), "steps": steps}
    cardinality = getattr(data, "cardinality", None)
    if steps is None and cardinality is not None and int(cardinality()) == -1:  # tf.data.INFINITE_CARDINALITY
        raise TrainingError("this dataset never ends, so its evaluation would not", hint="steps=, or no .repeat()")
    return {"x": data, "steps": steps}


def _next(new: list[kept.Kept]) -> kept.Kept:
    """The oldest, so that as few as possible are lost; but once training has ended the newest, which matters most."""
    if not new[-1].final:
        return new[0]
    return min(new, key=lambda each: (-each.steps_done, each.final))


def _link(path: Path, own: Path) -> bool:
    """Hold a checkpoint by a name of our own; whether it is still there."""
    own.unlink(missing_ok=True)
    try:
        own.hardlink_to(path)
    except FileNotFoundError:
        return False
    except OSError:  # a file system without hard links
        try:
            shutil.copyfile(path, own)
        except FileNotFoundError:
            return False
    return True


def _in_words(numbers: list[int]) -> str:
    """``2, 4-6``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1][1:] = [number]
        else:
            runs.append([number])
    return ", ".join("-".join(map(str, run)) for run in runs)
