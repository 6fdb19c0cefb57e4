"""From a task's output, in pieces as they come, to lines for a person."""

from __future__ import annotations

from typing import Final

from yurt.contract.progress import clean

#: A line that goes on for longer than this is shown in parts; one that rewrites itself is not.
LONGEST_LINE_BYTES: Final = 1 << 20
#: As much of a line that rewrites itself (a progress bar) is kept until it ends.
_KEPT_OF_BAR_BYTES: Final = 1 << 14
#: Control characters, which would move the cursor or ring; tab and newline are left.
_CONTROLS: Final = dict.fromkeys([*range(9), *range(11, 32), *range(127, 160)])
_TELLTALE: Final = tuple(bytes((code,)) for code in (*range(9), *range(11, 32), 127))
_C1: Final = b"\xc2"  # UTF-8 of U+0080 to U+009F begins so (and so do harmless letters)


class LineReader:
    """Takes bytes, gives whole lines: cleaned of escapes, and of what a progress bar has overwritten itself.

    A line is given once it has ended, so a bar that rewrites its line a thousand times is one line.
    """

    def __init__(self) -> None:
        self._partial = b""

    def feed(self, data: bytes) -> str:
        """The lines that `data` completes, each with its newline, as one text; empty where there is none."""
        whole, newline, rest = data.rpartition(b"\n")
        if not newline:
            return self._hold(self._partial + data)
        block = self._partial + whole
        return _cleaned(block) + self._hold(rest)

    def end(self) -> str:
        """What is left without a newline, as a line."""
        block, self._partial = self._partial, b""
        return _cleaned(block) if block else ""

    def _hold(self, rest: bytes) -> str:
        self._partial = rest
        if len(rest) <= _KEPT_OF_BAR_BYTES:
            return ""
        if b"\r" in rest or b"\b" in rest:
            self._partial = rest[-_KEPT_OF_BAR_BYTES:]
        elif len(rest) > LONGEST_LINE_BYTES:
            return self.end()
        return ""


def _cleaned(block: bytes) -> str:
    text = block.decode(errors="replace")
    if _C1 not in block and not any(code in block for code in _TELLTALE):
        return f"{text}\n"
    return "".join(f"{clean(line).translate(_CONTROLS)}\n" for line in text.split("\n"))
