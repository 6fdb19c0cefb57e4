"""Trying again, for the errors where that can help."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, TypeVar

from yurt.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 2.0

_T = TypeVar("_T")


def retrying(
    call: Callable[[], _T],
    *,
    deadline_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> _T:
    """Return what `call` returns, trying again on retryable errors until `deadline_s` from now.

    Pauses double from 50 ms to 2 s, each shortened at random by up to a half, so that many agents do not
    come back together. Raises the last error when no time is left, and any other error at once. Hand in
    calls that may be made twice: a compare-and-set whose answer was lost may have been applied.
    """
    end = clock() + deadline_s
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return call()
        except StoreError as error:
            left_s = end - clock()
            if not error.retryable or left_s <= 0:
                raise
        sleep(min(pause_s * (1 - _random() / 2), left_s))
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


def _random() -> float:
    """From 0 to 1, without the module `random`."""
    return os.urandom(1)[0] / 255
