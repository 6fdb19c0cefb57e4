"""Copies the output of tasks on other machines into the run's folder, where every verb finds it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from yurt.engines.base import Engine
from yurt.errors import EngineError
from yurt.launcher.records import RunFolder

#: Seconds between two rounds over all tasks: one read a task and round, and no more than so many in a second.
_ROUND_S: Final = 0.3
_MOST_READS_S: Final = 60
#: Seconds for which the last lines are asked for after the end of a run whose cluster does not answer.
_LAST_S: Final = 20.0


class Collector:
    """A thread that appends to each task's ``log``, and notes times in ``log.times`` as an agent would.

    `note` is called, in that thread, after each round that brought something: what is in the logs by then is to be
    remembered as read.
    """

    def __init__(self, folder: RunFolder, engine: Engine, tasks: list[str], note: Callable[[], None]) -> None:
        self._folder = folder
        self._engine = engine
        self._note = note
        #: Why some output could not be read, the last time that it was tried.
        self.problem: str | None = None
        self._offsets = {task: _size(folder, task) for task in tasks}
        self._marked: dict[str, float] = {}
        self._last = threading.Event()
        self._thread = threading.Thread(target=self._work, name="collector", daemon=True)

    def start(self) -> None:
        """Copy from now on."""
        self._thread.start()

    def catch_up(self) -> None:
        """Copy all that there is; before `start`."""
        while self._round():
            self._note()

    def finish(self) -> None:
        """Copy what is left, and end."""
        self._last.set()
        if self._thread.is_alive():
            self._thread.join(_LAST_S)

    def _work(self) -> None:
        pause_s = max(_ROUND_S, len(self._offsets) / _MOST_READS_S)
        while True:
            last = self._last.is_set()  # asked before the round: what comes after it nobody writes
            came = self._round()
            if came:
                self._note()
            elif last:
                return
            else:
                self._last.wait(pause_s)

    def _round(self) -> bool:
        came = False
        problem: str | None = None
        for task in self._offsets:
            try:
                data, self._offsets[task] = self._engine.logs(task, self._offsets[task])
            except EngineError as error:
                problem = str(error)
                continue  # asked again; the run itself does not depend on it
            if data:
                came = True
                self._append(task, data)
        self.problem = problem
        return came

    def _append(self, task: str, data: bytes) -> None:
        path = self._folder.log(task)
        path.parent.mkdir(parents=True, exist_ok=True)
        now = time.time()
        if now - self._marked.get(task, 0.0) >= 1:
            self._marked[task] = now
            with path.with_name("log.times").open("a", encoding="ascii") as times:
                times.write(f"{now:.3f} {self._offsets[task] - len(data)}\n")
        with path.open("ab") as log:
            log.write(data)


def _size(folder: RunFolder, task: str) -> int:
    path = folder.log(task)
    return path.stat().st_size if path.exists() else 0
