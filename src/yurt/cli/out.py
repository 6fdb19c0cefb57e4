"""Standard output that may vanish: a closed pipe or a lost terminal ends the showing, never the run."""

from __future__ import annotations

import os
import select
import sys
from typing import TextIO


class Out:
    """A text file over a descriptor. What cannot be written any more is dropped in silence, and `gone` is set.

    It has as much of a file as rich needs.
    """

    encoding = "utf-8"

    def __init__(self, stream: TextIO) -> None:
        self._fd = stream.fileno()
        self._encoding = stream.encoding or "utf-8"
        self.gone = False

    def write(self, text: str) -> int:
        """All of it, at once."""
        view = memoryview(text.encode(self._encoding, "replace"))
        while view and not self.gone:
            try:
                view = view[os.write(self._fd, view) :]
            except BlockingIOError:  # somebody has made the terminal non-blocking for all of us
                select.select([], [self._fd], [])
            except OSError:  # EPIPE: the reader has gone; EIO: the terminal has
                self.gone = True
        return len(text)

    def say(self, text: str) -> None:
        """One line, or several."""
        self.write(f"{text}\n")

    def flush(self) -> None:
        """Nothing is held back."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return not self.gone and os.isatty(self._fd)

    def fileno(self) -> int:
        """The descriptor."""
        return self._fd


def standard_output() -> Out:
    """Over standard output."""
    return Out(sys.stdout)


def standard_error() -> Out:
    """Over standard error."""
    return Out(sys.stderr)
