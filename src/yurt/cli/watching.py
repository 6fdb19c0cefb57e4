"""Waits for the end of a run that another process serves, by what it leaves in the run's folder."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Final

from yurt.launcher.records import RunFolder, Snapshot

_LOOK_S: Final = 0.2


def until_over(folder: RunFolder) -> Snapshot:
    """Wait until the run has ended and nobody serves it any more: all of its output is there then."""
    for snapshot in looks(folder):
        if snapshot is not None and over(folder, snapshot):
            return snapshot
        time.sleep(_LOOK_S)
    raise AssertionError("looks never end")


def looks(folder: RunFolder) -> Iterator[Snapshot | None]:
    """The run as it is at each call. Raises RunNotFound once its folder is removed."""
    while True:
        folder.record()
        yield folder.snapshot()


def over(folder: RunFolder, snapshot: Snapshot) -> bool:
    """Whether the run has its verdict and whoever served it is done."""
    return snapshot.state.verdict is not None and folder.host() is None
