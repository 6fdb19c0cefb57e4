"""Takes a task's output line by line: passes it on whole, keeps its end, reads progress off it."""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Any, Final

from yurt.contract.progress import KerasLines, clean

_CHUNK_BYTES: Final = 1 << 16
_KEPT_LINES: Final = 30
_LONGEST_KEPT_LINE: Final = 2000
#: A line that starts with a digit, a blank or an E may tell progress; no other is looked at.
_TELLING: Final = b"0123456789 E\r\b\x1b"


class Output:
    """The agent's standard output: the task's lines and the agent's own, none torn by another.

    `log_times` names a file that gets ``<unix time> <byte offset>`` at most once a second, so that a reader can
    find where in the log a moment is.
    """

    def __init__(self, fd: int = 1, log_times: str | None = None) -> None:
        self._fd = fd
        self._lock = threading.Lock()
        self._at_line_start = True
        self._keras = KerasLines()
        self._tail: deque[bytes] = deque(maxlen=_KEPT_LINES)
        self._partial = b""
        self._times = open(log_times, "a") if log_times else None  # noqa: SIM115 - lives as long as the agent
        self._last_mark = 0.0

    def say(self, text: str) -> None:
        """A line of the agent's own."""
        with self._lock:
            start = b"" if self._at_line_start else b"\n"
            self._write(start + f"yurt: {text}\n".encode())

    def pump(self, fd: int) -> threading.Thread:
        """Pass on all that comes from `fd` until it ends, in a thread; join it to have everything."""
        thread = threading.Thread(target=self._pump, args=(fd,), name="output", daemon=True)
        thread.start()
        return thread

    def _pump(self, fd: int) -> None:
        while True:
            try:
                data = os.read(fd, _CHUNK_BYTES)
            except OSError:
                return
            if not data:
                return
            with self._lock:
                self._write(data)
                self._read(data)

    def _write(self, data: bytes) -> None:
        now = time.time()
        if self._times and now - self._last_mark >= 1:
            self._last_mark = now
            try:
                self._times.write(f"{now:.3f} {os.lseek(self._fd, 0, os.SEEK_CUR)}\n")
                self._times.flush()
            except OSError:
                self._times = None
        self._at_line_start = data.endswith(b"\n")
        view = memoryview(data)
        while view:
            try:
                view = view[os.write(self._fd, view) :]
            except OSError:
                return  # nobody reads any more, or the disk is full: training goes on

    def _read(self, data: bytes) -> None:
        lines = (self._partial + data).split(b"\n")
        self._partial = lines.pop()[-_CHUNK_BYTES:]
        for line in lines:
            self._tail.append(line[-_LONGEST_KEPT_LINE:])
            self._look(line)
        if self._partial:
            self._look(self._partial)  # a progress bar rewrites one line and ends it at the end of the epoch

    def _look(self, line: bytes) -> None:
        if line[:1] in _TELLING_SET and (b"/" in line or b": " in line):
            self._keras.feed(clean(line[-_LONGEST_KEPT_LINE:].decode(errors="replace")))

    def progress(self) -> dict[str, Any]:
        """What the lines told last."""
        with self._lock:
            return dict(self._keras.progress)

    def last_lines(self, count: int = 20) -> tuple[str, ...]:
        """The end of the task's output, cleaned, without empty lines."""
        with self._lock:
            lines = [*self._tail, *([self._partial[-_LONGEST_KEPT_LINE:]] if self._partial else [])]
        cleaned = (clean(line.decode(errors="replace")).rstrip() for line in lines)
        return tuple(line for line in cleaned if line)[-count:]

    def forget(self) -> None:
        """A new process starts: its last lines are its own."""
        with self._lock:
            self._tail.clear()
            self._partial = b""


_TELLING_SET: Final = {bytes((character,)) for character in _TELLING}
