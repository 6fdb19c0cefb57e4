"""``trackers``: Keras callbacks of TensorBoard, MLflow and Weights & Biases for a script's own list."""

from __future__ import annotations

import os
from typing import Any, Final

from yurt.contract.spec import MLFLOW, TENSORBOARD, WANDB
from yurt.training.errors import TrainingError
from yurt.training.mending import part

TRACKERS: Final = (TENSORBOARD, MLFLOW, WANDB)


def trackers(*names: str, legacy: bool | None = None) -> list[Any]:
    """The callbacks of these trackers, in the order of their names; without names those of the job file's `track`.

    An empty list on every task but the leader (the chief, else worker 0). They log into YURT_TRACKING_DIR, else into
    ``tracking`` below the current folder, and go on with the run that an earlier start of this one began; MLflow and
    W&B go where their own variables say. `fit` does not get a second one by the job file. `legacy` says that they are
    for tf_keras, as they are where TF_USE_LEGACY_KERAS is set. A tracker that cannot log is told in one line and left
    out. Raises TrainingError for a name that is none of ``tensorboard``, ``mlflow`` and ``wandb``.
    """
    for name in names:
        if name not in TRACKERS:
            raise TrainingError(f"{name!r} is no tracker", hint=f"one of {', '.join(TRACKERS)}")
    if legacy is None:
        legacy = os.environ.get("TF_USE_LEGACY_KERAS") in ("1", "True", "true")
    tracking = part("_yurt_tracking")
    made: list[Any] = tracking.callbacks(names or tracking.names(), legacy=legacy)
    return made
