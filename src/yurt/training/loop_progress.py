"""The progress file of a loop of one's own: as `fit`'s, see docs/running.md."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Final

from yurt.contract import names

EVERY_S: Final = 0.5
#: Share of the time that input is waited for: over the last seconds.
WINDOW_S: Final = 5.0


class LoopProgress:
    """Writes the file that YURT_PROGRESS_FILE names, whole, at most twice a second; nothing where it names none."""

    def __init__(self, epochs: int, steps: int, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = os.environ.get(names.PROGRESS_FILE)
        self._known: dict[str, Any] = {"epochs": epochs, "steps": steps}
        self._clock = clock
        self._written_at = float("-inf")
        self._waited_s = 0.0
        self._marks: deque[tuple[float, float]] = deque([(clock(), 0.0)])
        self._last: Mapping[str, Any] = {}

    def waited(self, seconds: float) -> None:
        """So long the loop stood still for its input."""
        self._waited_s += seconds

    def step(self, epoch: int, step: int, shown: Mapping[str, Any]) -> None:
        """After `step` steps of an epoch, which counts from 0."""
        if self._path is None:
            return
        self._known.update(epoch=epoch + 1, step=step)
        if shown:
            self._last = shown
        if self._clock() - self._written_at >= EVERY_S:
            self.write()

    def write(self, *, force: bool = False) -> None:
        """Write it now; values are fetched from the device here. Training goes on whatever goes wrong."""
        if self._path is None or ("epoch" not in self._known and force):
            return
        self._written_at = self._clock()
        shown = {name: number for name, value in self._last.items() if (number := _number(value)) is not None}
        if "loss" in shown:
            self._known["loss"] = shown.pop("loss")
        if shown:
            self._known["metrics"] = {**self._known.get("metrics", {}), **shown}
        share = self._share()
        if share is not None:
            self._known["input_wait"] = share
        part = f"{self._path}.{os.getpid()}.part"
        try:
            with open(part, "w", encoding="utf-8") as file:  # noqa: PTH123 - the path is a text
                json.dump(self._known, file)
            os.replace(part, self._path)  # noqa: PTH105 - the path is a text
        except OSError:
            pass

    def _share(self) -> float | None:
        self._marks.append((self._clock(), self._waited_s))
        while len(self._marks) > 2 and self._marks[1][0] < self._marks[-1][0] - WINDOW_S:
            self._marks.popleft()
        seconds = self._marks[-1][0] - self._marks[0][0]
        return round(min(1.0, (self._marks[-1][1] - self._marks[0][1]) / seconds), 3) if seconds > 0 else None


def _number(value: Any) -> float | None:
    """A finite float; None for anything else (JSON has no NaN)."""
    fetch = getattr(value, "fetch", None)  # a value that lies on a worker of a coordinator
    try:
        number = float(fetch() if callable(fetch) else value)
    except (TypeError, ValueError):
        return None
    return number if number - number == 0 else None
