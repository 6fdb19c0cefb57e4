"""Turns the end of a process into what the run needs to know of it."""

from __future__ import annotations

import signal
import time
from collections.abc import Sequence
from typing import Final

from yurt.contract.exits import exit_code_of
from yurt.contract.state import Exit

#: What TensorFlow 2.21 prints when its server's port is in use.
_PORT_TAKEN: Final = ("Could not start gRPC server", "No address added out of total")


def classify(returncode: int, *, stopped: bool, out_of_memory: bool, lines: Sequence[str], attempt: int) -> Exit:
    """The end of a process as an `Exit`; `returncode` is subprocess's, negative for a signal.

    A process that Yurt stopped and that exits 0 all the same had finished. One below a shell that was killed shows
    as 128 + n. `lines` are its last ones.
    """
    code, number = exit_code_of(returncode)
    reason, message = "exit", None
    killed = number == signal.SIGKILL or code == 128 + signal.SIGKILL
    if code == 0:
        lines = ()
    elif stopped:
        reason, lines = "stopped", ()
    elif killed and out_of_memory:
        reason = "out-of-memory"
    elif taken := next((line for line in lines if any(text in line for text in _PORT_TAKEN)), None):
        reason, message = "port-taken", taken.strip()[:200]
    elif number is not None:
        reason = "signal"
    return Exit(
        code=code,
        reason=reason,
        at=time.time(),
        signal=number,
        attempt=attempt,
        message=message,
        last_lines=tuple(lines),
    )
