"""When to save and when to leave, so that all members of a gang do it at the same step.

One member alone is told by SIGTERM, and time differs between members; so about once a second all of them say in one
small collective whether they were told, and the leader says whether it is time to save and after how many steps the
next collective is. Steps between two of them cost nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from yurt.training.gang import Gang

#: How often members speak with one another, in seconds, and how fast the steps between may grow.
EVERY_S: Final = 1.0
_GROWTH: Final = 8


@dataclass(frozen=True, slots=True)
class Beat:
    """What is to be done after a step; the same on all members."""

    save: bool
    leave: bool


class Pulse:
    """`told` says whether this member was told to leave. `every_steps` and `every_s` may both be None."""

    def __init__(
        self,
        gang: Gang,
        told: Callable[[], bool],
        *,
        every_steps: int | None = None,
        every_s: float | None = None,
        steps_done: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._gang, self._told, self._clock = gang, told, clock
        self._every_steps, self._every_s = every_steps, every_s
        self._saved_at, self._saved_steps = clock(), steps_done
        self._spoke_at, self._spoke_steps, self._pause = clock(), steps_done, 1

    def beat(self, steps_done: int) -> Beat:
        """After a step, `steps_done` in all. With several members some of these calls are collective."""
        every = self._every_steps
        by_steps = every is not None and steps_done // every > self._saved_steps // every
        now = self._clock()
        by_time = self._every_s is not None and now - self._saved_at >= self._every_s
        if not self._gang.several:
            return Beat(by_steps or by_time, self._told())
        steps = steps_done - self._spoke_steps
        if steps < self._pause:
            return Beat(by_steps, leave=False)
        a_step_s = (now - self._spoke_at) / max(1, steps)
        pause = max(1, min(int(EVERY_S / max(a_step_s, 1e-6)), _GROWTH * self._pause)) if self._gang.leads else 0
        told, save, self._pause = (
            int(value) for value in self._gang.total([int(self._told()), int(by_time and self._gang.leads), pause])
        )
        self._spoke_at, self._spoke_steps = self._clock(), steps_done
        return Beat(by_steps or bool(save), bool(told))

    def saved(self, steps_done: int) -> None:
        """A checkpoint was kept after so many steps."""
        self._saved_at, self._saved_steps = self._clock(), steps_done
