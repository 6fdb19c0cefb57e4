"""Reads the logs of a run's tasks to the screen: what there is in the order of time, then what comes."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Final

from yurt.cli.lines import LineReader
from yurt.cli.marks import Marks
from yurt.cli.news import restarts
from yurt.cli.out import Out
from yurt.cli.stored_logs import StoredLog
from yurt.cli.summary import sentence
from yurt.cli.watching import looks, over
from yurt.launcher.records import RunFolder, Snapshot

#: Seconds between two looks while lines come, and while none do.
_BUSY_S: Final = 0.1
_QUIET_S: Final = 0.25


class Reading:
    """Several tasks' logs, from an offset each."""

    def __init__(self, logs: Mapping[str, StoredLog], starts: Mapping[str, int], marks: Marks, out: Out) -> None:
        self._logs = logs
        self._offsets = dict(starts)
        self._readers = {task: LineReader() for task in logs}
        self.marks = marks
        self._out = out

    def in_order_of_time(self) -> None:
        """All that is there by now: the tasks' stretches of about a second, one after another as they were printed."""
        pieces = [
            (stretch, task)
            for task, log in self._logs.items()
            for stretch in log.stretches(self._offsets[task], log.size())
        ]
        for stretch, task in sorted(pieces, key=lambda pair: pair[0].at):
            self._pass_on(task, stretch.end)

    def what_came(self) -> bool:
        """All that has come since; whether there was anything."""
        return sum(self._pass_on(task, None) for task in self._logs) > 0

    def end(self) -> None:
        """What stands at the end of a log without a newline."""
        for task, reader in self._readers.items():
            self._out.write(self.marks.mark(task, reader.end()))

    def _pass_on(self, task: str, end: int | None) -> bool:
        came = False
        while data := self._logs[task].read(self._offsets[task], end):
            self._offsets[task] += len(data)
            self._out.write(self.marks.mark(task, self._readers[task].feed(data)))
            came = True
        return came


def follow_to_end(folder: RunFolder, reading: Reading, out: Out) -> int:
    """Show what comes until the run is over and everything is shown; the run's exit code."""
    spec = folder.spec()
    told: Snapshot | None = None
    for snapshot in looks(folder):
        ended = snapshot is not None and over(folder, snapshot)  # asked before the last lines are read
        came = reading.what_came()
        if snapshot is not None:
            if told is not None:
                out.write(reading.marks.own(restarts(spec, told.state, snapshot.state)))
            told = snapshot
        if ended and not came:
            break
        if out.gone:
            return 0
        time.sleep(_BUSY_S if came else _QUIET_S)
    reading.end()
    assert told
    assert told.state.verdict
    out.write(reading.marks.own([sentence(spec, told.state, told.state.verdict, colour=False)]))
    return told.state.verdict.exit_code
