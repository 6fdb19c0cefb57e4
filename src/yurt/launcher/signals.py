"""What signals mean to the process that serves a run."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType

from yurt.launcher.serving import RunHost


def stop_on_signals(host: RunHost, on_hangup: Callable[[], None] | None) -> None:
    """The first SIGINT or SIGTERM stops the run gracefully, the second at once; a lost terminal stops nothing."""
    asked = []

    def stop(number: int, _frame: FrameType | None) -> None:
        by = "Ctrl-C" if number == signal.SIGINT else "SIGTERM"
        asked.append(number)
        host.stop(at_once=len(asked) > 1, by=by)

    def hang_up(_number: int, _frame: FrameType | None) -> None:
        if on_hangup:
            on_hangup()

    signal.signal(signal.SIGINT, stop)
    signal.signal(signal.SIGTERM, stop)
    signal.signal(signal.SIGHUP, hang_up)
