"""Runs jobs that are ended and go on, and compares what they print last."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from tests.support.runs import Folder, Run
from tests.training.pairs import SCRIPTS
from yurt import data

STEPS = 20
"""Of an epoch of `write_rows`, in batches of 16."""


def write_rows(folder: Path) -> None:
    random = np.random.default_rng(0)
    x = random.random((330, 6), "float32")
    data.write(folder / "data" / "train", {"x": x, "y": x[:, :1] * x[:, 1:2]}, shards=4)


def start(folder: Folder, name: str, script: str, *, job: dict[str, Any] | None = None, **environment: str) -> Run:
    """A job of two workers unless it says otherwise, in a home of its own."""
    own = Folder(folder.path / name)
    own.path.mkdir()
    whole = {
        "name": name,
        "command": "python train.py",
        "roles": {"worker": 2},
        "max_restarts": 20,
        "env": {"DATA": str(folder.path / "data" / "train"), **environment},
        **(job or {}),
    }
    return own.start(own.write(whole, train=(SCRIPTS / script).read_text()))


def case(text: str) -> Any:
    """What a script printed last."""
    lines = [json.loads(line[5:]) for line in text.splitlines() if line.startswith("CASE ")]
    assert lines, text
    return lines[-1]["value"]


def ended(run: Run, task: str = "worker/0", within_s: float = 900) -> Any:
    assert run.wait(within_s) == 0, run.output
    return case(run.log(task))


def worst(one: Any, other: Any) -> float:
    """The largest relative difference of two values of JSON that are built alike."""
    if isinstance(one, dict):
        assert one.keys() == other.keys()
        return max((worst(one[key], other[key]) for key in one), default=0.0)
    if isinstance(one, list):
        assert len(one) == len(other)
        return max((worst(*pair) for pair in zip(one, other, strict=True)), default=0.0)
    return abs(one - other) / max(1e-3, abs(other))
