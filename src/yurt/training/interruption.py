"""SIGTERM (a spot notice, a drain, `yurt stop`) means: finish the step, keep a checkpoint, leave with exit code 143.

143 is what a shell says of a process that SIGTERM ended: "interrupted, start me again". Yurt and TFJob's policy
ExitCode start a task again for any code from 128 on.

The process leaves by SystemExit, so that the script's own ``finally`` runs. But Python's own end takes TensorFlow's
runtime down, which waits many seconds for members that are gone already (9 s seen, 2.21), and no thread of Python's
runs any more then: so the process is ended where Python calls what is to be called at exit.

A handler must be set after the strategy exists: MultiWorkerMirroredStrategy puts one of its own (in C++) over any that
was there, and from then on a SIGTERM does nothing at all (TensorFlow 2.21).
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from types import FrameType
from typing import Any, Final

EXIT_CODE: Final = 128 + signal.SIGTERM
#: For the script's own ``finally``, and for threads that it waits for.
_LEAVE_WITHIN_S: Final = 3.0


class Interruption:
    """`told` becomes true with the first SIGTERM; the second ends the process at once."""

    def __init__(self) -> None:
        self.told = False
        self._before: Any = None
        self._set = False
        self._leaving = False

    def watch(self) -> None:
        """Set the handler, unless the script has one of its own or this is not the main thread."""
        if self._set or threading.current_thread() is not threading.main_thread():
            return
        before = signal.getsignal(signal.SIGTERM)
        if before not in (signal.SIG_DFL, None):
            return
        signal.signal(signal.SIGTERM, self._hear)
        self._before, self._set = before, True
        atexit.register(self._at_exit)

    def stop_watching(self) -> None:
        """Put back what was there. After a strategy that is the default, with which SIGTERM ends the process."""
        if self._set and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, self._before or signal.SIG_DFL)
            self._set = False
            atexit.unregister(self._at_exit)

    def leave(self) -> None:
        """End this process with 143: by SystemExit, and by force if that hangs."""
        self._leaving = True
        threading.Thread(target=_end_soon, name="yurt-leave", daemon=True).start()
        raise SystemExit(EXIT_CODE)

    def _hear(self, _number: int, _frame: FrameType | None) -> None:
        if self.told:
            os._exit(EXIT_CODE)
        self.told = True

    def _at_exit(self) -> None:
        if self._leaving:
            _end()


def _end_soon() -> None:
    time.sleep(_LEAVE_WITHIN_S)
    _end()


def _end() -> None:
    leaving = sys.modules.get("_yurt_leaving")
    if leaving is not None:
        leaving.last_things()  # closes trackers
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            pass
    os._exit(EXIT_CODE)
