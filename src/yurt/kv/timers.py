"""Timers of the embedded store's loop: what to call when, in the order of their times."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Timer:
    """One call to come; `cancel` it when it is no longer wanted."""

    __slots__ = ("call", "when_s")

    def __init__(self, when_s: float, call: Callable[[], object]) -> None:
        self.when_s = when_s
        self.call: Callable[[], object] | None = call

    def __lt__(self, other: Timer) -> bool:
        return self.when_s < other.when_s

    def cancel(self) -> None:
        """Never call it."""
        self.call = None


class Timers:
    """A heap of timers. Cancelled ones are swept out when they are the most of it."""

    def __init__(self) -> None:
        self._heap: list[Timer] = []
        self._sweep_at = 1024

    def add(self, when_s: float, call: Callable[[], object]) -> Timer:
        """Call `call` at this time."""
        if len(self._heap) >= self._sweep_at:
            self._heap = [timer for timer in self._heap if timer.call is not None]
            heapq.heapify(self._heap)
            self._sweep_at = max(1024, 2 * len(self._heap))
        timer = Timer(when_s, call)
        heapq.heappush(self._heap, timer)
        return timer

    def next_s(self) -> float | None:
        """When the next call is due; None where there is none."""
        while self._heap and self._heap[0].call is None:
            heapq.heappop(self._heap)
        return self._heap[0].when_s if self._heap else None

    def run(self, now_s: float) -> None:
        """Make the calls that are due."""
        while (when_s := self.next_s()) is not None and when_s <= now_s:
            call = heapq.heappop(self._heap).call
            if call is not None:
                call()
