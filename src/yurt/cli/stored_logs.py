"""The log of one task as it lies in the run's folder, and the times beside it."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: Bytes read at once.
PIECE_BYTES: Final = 1 << 20
#: The agent notes a time with the first output of each second.
_MARK_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Stretch:
    """A part of a log: what came from `at` (Unix time) on, from byte `start` to before `end`."""

    at: float
    start: int
    end: int


class StoredLog:
    """Reads ``log`` and ``log.times`` (lines of ``<unix time> <byte offset>``)."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def size(self) -> int:
        """Bytes by now."""
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0

    def read(self, start: int, end: int | None = None) -> bytes:
        """One piece from `start` on, not beyond `end`; empty where there is no more."""
        most = PIECE_BYTES if end is None else min(PIECE_BYTES, end - start)
        if most <= 0:
            return b""
        try:
            with self._path.open("rb") as file:
                file.seek(start)
                return file.read(most)
        except FileNotFoundError:
            return b""

    def start(self, *, since: float | None, tail: int | None) -> int:
        """The byte to begin at: what came since a time, at most so many last lines, the stricter of both."""
        first = 0 if since is None else self._since(since)
        return first if tail is None else max(first, self._tail(tail))

    def stretches(self, start: int, end: int) -> list[Stretch]:
        """The log between two bytes, cut where its time is known."""
        marks = [(at, offset) for at, offset in self._times() if start < offset < end]
        before = [at for at, offset in self._times() if offset <= start]
        points = [(before[-1] if before else 0.0, start), *marks]
        ends = [offset for _, offset in points[1:]] + [end]
        return [Stretch(at, here, there) for (at, here), there in zip(points, ends, strict=True) if here < there]

    def _times(self) -> list[tuple[float, int]]:
        try:
            text = self._path.with_name(f"{self._path.name}.times").read_text(encoding="ascii")
        except (OSError, ValueError):
            return []
        marks = []
        for line in text.splitlines():
            at, _, offset = line.partition(" ")
            try:
                marks.append((float(at), int(offset)))
            except ValueError:
                continue  # being written
        return marks

    def _since(self, since: float) -> int:
        marks = self._times()
        position = bisect_left([at for at, _ in marks], since)
        if position and marks[position - 1][0] + _MARK_S > since:
            position -= 1  # what came within the second after a mark has no mark of its own
        return marks[position][1] if position < len(marks) else self.size() if marks else 0

    def _tail(self, lines: int) -> int:
        """Where the last `lines` lines begin; a line without its newline is one."""
        position = size = self.size()
        wanted = lines
        try:
            with self._path.open("rb") as file:
                if size:
                    file.seek(size - 1)
                    wanted += file.read(1) == b"\n"
                while position > 0 and wanted > 0:
                    step = min(1 << 16, position)
                    position -= step
                    file.seek(position)
                    block = file.read(step)
                    found = block.count(b"\n")
                    if found < wanted:
                        wanted -= found
                        continue
                    cut = len(block)
                    for _ in range(wanted):
                        cut = block.rindex(b"\n", 0, cut)
                    return position + cut + 1
        except FileNotFoundError:
            return 0
        return position if wanted else size
