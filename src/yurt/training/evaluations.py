"""What an evaluator found: a line of JSON for each checkpoint, in a file beside the checkpoints."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final, Literal

Mode = Literal["auto", "min", "max"]
#: Endings of the names of metrics of which more is better; of any other less is.
_MORE_IS_BETTER: Final = (
    "acc",
    "accuracy",
    "auc",
    "precision",
    "recall",
    "f1_score",
    "fbeta_score",
    "r2_score",
    "cosine_similarity",
    "iou",
    "specificity",
    "sensitivity",
    "true_positives",
    "true_negatives",
)


@dataclass(frozen=True, slots=True)
class Evaluated:
    """One checkpoint's metrics: after `epoch` epochs and `step` steps in all.

    `final`: training had ended. `at` is when the checkpoint was written, in seconds since 1970: with it a line belongs
    to one checkpoint and no other.
    """

    epoch: int
    step: int
    metrics: Mapping[str, float]
    final: bool
    at: float


def read(file: Path) -> list[Evaluated]:
    """All lines but those that a killed writer left half; none where there is no file."""
    found = []
    for line in file.read_text(encoding="utf-8").splitlines() if file.is_file() else ():
        try:
            given = json.loads(line)
            metrics = {name: _number(value) for name, value in given["metrics"].items()}
            found.append(Evaluated(given["epoch"], given["step"], metrics, given["final"], given["at"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            continue
    return found


def append(file: Path, evaluated: Evaluated) -> None:
    """One more line, on the disk when this returns. JSON has no NaN: that is null there."""
    metrics = {name: value if math.isfinite(value) else None for name, value in evaluated.metrics.items()}
    line = json.dumps({**asdict(evaluated), "metrics": metrics}) + "\n"
    with file.open("ab+") as stream:
        if stream.tell():
            stream.seek(-1, os.SEEK_END)
            if stream.read(1) != b"\n":  # half a line of a killed writer
                line = "\n" + line
        stream.write(line.encode())
        stream.flush()
        os.fsync(stream.fileno())


def best(found: Iterable[Evaluated], metric: str, mode: Mode) -> Evaluated | None:
    """The best by this metric, the first of equals; None where none has a number for it."""
    with_number = [each for each in found if math.isfinite(each.metrics.get(metric, math.nan))]
    sign = -1 if more_is_better(metric, mode) else 1
    return min(with_number, key=lambda each: sign * each.metrics[metric], default=None)


def more_is_better(metric: str, mode: Mode) -> bool:
    """What `mode` says; "auto" goes by the metric's name."""
    return mode == "max" or (mode == "auto" and metric.lower().endswith(_MORE_IS_BETTER))


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)
