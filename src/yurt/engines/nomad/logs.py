"""A task's output over all its allocations, as one stream of bytes with one offset.

Read file by file, since a position in "the log" moves when Nomad removes its oldest file; a finished or lost
allocation's part stays where it was, the next one's follows it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

#: (allocation, path, offset) -> the rest of the file, or None where it cannot be had.
ReadFile = Callable[[str, str, int], bytes | None]
#: (allocation, folder) -> names, or None.
ListFiles = Callable[[str, str], list[str] | None]


@dataclass
class Cursor:
    """Where the reading of one task stands: `position` in the stream is `offset` of a file of an allocation."""

    position: int = 0
    allocations: list[str] = field(default_factory=list)  # oldest first
    allocation: int = 0
    file: int = 0
    offset: int = 0


class TaskLog:
    """Reads one task's stream forward. `task_name` is Nomad's, `largest_file_bytes` its `MaxFileSizeMB`."""

    def __init__(self, task_name: str, read_file: ReadFile, list_files: ListFiles, largest_file_bytes: int) -> None:
        self._task_name = task_name
        self._read_file = read_file
        self._list_files = list_files
        self._largest_file_bytes = largest_file_bytes
        self.cursor = Cursor()

    def take(self, allocation: str) -> None:
        """There is a newer allocation of this task."""
        if allocation not in self.cursor.allocations:
            self.cursor.allocations.append(allocation)

    def read(self) -> bytes:
        """What is new; empty where there is nothing yet."""
        at = self.cursor
        while at.allocation < len(at.allocations):
            if data := self._next():
                at.position += len(data)
                return data
            if at.allocation + 1 == len(at.allocations):
                break
            at.allocation, at.file, at.offset = at.allocation + 1, 0, 0
        return b""

    def _next(self) -> bytes:
        at = self.cursor
        data = self._piece(at.file, at.offset)
        if data:
            at.offset += len(data)
            return data
        if data is None and at.offset == 0 and at.file == 0:
            return self._skip_removed()  # not started yet, or its first file is gone
        if data is None or at.offset >= self._largest_file_bytes // 2:
            more = self._piece(at.file + 1, 0)
            if more is not None:
                at.file, at.offset = at.file + 1, len(more)
                return more
            if data is None:
                return self._skip_removed()
        return b""

    def _skip_removed(self) -> bytes:
        """Go on with the oldest file that there still is.

        What is written faster than it is read is lost in Nomad, and nothing says so.
        """
        at = self.cursor
        start = f"{self._task_name}.stdout."
        names = self._list_files(at.allocations[at.allocation], "alloc/logs") or ()
        numbers = [name.removeprefix(start) for name in names if name.startswith(start)]
        later = sorted(int(number) for number in numbers if number.isdigit() and int(number) > at.file)
        if not later:
            return b""
        data = self._piece(later[0], 0) or b""
        at.file, at.offset = later[0], len(data)
        return data

    def _piece(self, number: int, offset: int) -> bytes | None:
        at = self.cursor
        path = f"alloc/logs/{self._task_name}.stdout.{number}"
        return self._read_file(at.allocations[at.allocation], path, offset)
