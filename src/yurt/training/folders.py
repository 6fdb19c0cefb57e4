"""Where a task's checkpoints and its model go: where the run says, else below the current folder."""

from __future__ import annotations

import os
from pathlib import Path

from yurt.contract import names


def model_dir() -> Path:
    """The folder of the finished model: YURT_MODEL_DIR, else ``model``.

    Each task of a run has its own; that of the deciding task is published.
    """
    return Path(os.environ.get(names.MODEL_DIR) or "model")


def checkpoint_dir() -> Path:
    """The folder of the checkpoints: YURT_CHECKPOINT_DIR, else ``checkpoints``.

    One for all tasks of a run, over all its starts.
    """
    return Path(os.environ.get(names.CHECKPOINT_DIR) or "checkpoints")
