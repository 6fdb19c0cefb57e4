"""Shows a run while it is served: its tasks' lines as they come, what happens to it, and live lines on a terminal.

It works in a thread of its own: a terminal that is held (Ctrl-S), or a pager that does not read, keeps nobody from
serving the run.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from yurt.cli.lines import LineReader
from yurt.cli.marks import Marks
from yurt.cli.news import news, waits
from yurt.cli.noise import without_noise
from yurt.cli.out import Out
from yurt.contract.spec import RunSpec
from yurt.launcher.records import Snapshot

#: Seconds between two looks at the logs while lines come, and while none do.
_BUSY_S: Final = 0.2
_QUIET_S: Final = 0.25

Read = Callable[[str, int], tuple[bytes, int]]


class View(Protocol):
    """Where lines are shown: plainly, or above live ones."""

    def lines(self, text: str) -> None:
        """Show whole lines, each with its newline."""

    def look(self, snapshot: Snapshot) -> None:
        """Show the run as it is now."""

    def close(self) -> None:
        """Leave the screen as lines alone would have."""


class Plain:
    """Lines and nothing else."""

    def __init__(self, out: Out) -> None:
        self._out = out

    def lines(self, text: str) -> None:
        """Show whole lines."""
        self._out.write(text)

    def look(self, snapshot: Snapshot) -> None:
        """There is nothing that lives."""

    def close(self) -> None:
        """There is nothing to leave."""


class Show:
    """The showing of one run. `read` gives a task's output from an offset on, as `Engine.logs` does."""

    def __init__(self, spec: RunSpec, first: Snapshot, read: Read, view: Callable[[], View], marks: Marks) -> None:
        self._spec = spec
        self._read = read
        self._make_view = view
        self._marks = marks
        self._latest = first
        self._told = first.state
        self._waiting: Mapping[str, str] = {}
        self._readers = {task.name: LineReader() for task in spec.tasks}
        self._offsets = dict.fromkeys(self._readers, 0)
        self._wake = threading.Event()
        self._over = False
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="show", daemon=True)

    def start(self) -> None:
        """Show from now on."""
        self._thread.start()

    def look(self, snapshot: Snapshot) -> None:
        """Take the run as it is now; called by whoever serves it."""
        changed = snapshot.state is not self._latest.state
        self._latest = snapshot
        if changed:
            self._wake.set()

    def finish(self) -> None:
        """Show what is left, to the last line; waits for it."""
        self._over = True
        self._wake.set()
        self._thread.join()
        if self.error:
            raise self.error

    def _work(self) -> None:
        view: View | None = None
        try:
            view = self._make_view()  # here, for what it imports takes a while
            while True:
                self._wake.clear()
                over = self._over  # read before the logs are: after it, nothing is added to them
                came = self._pass_on(view)
                self._tell(view)
                if over and not came:
                    break
                view.look(self._latest)
                self._wake.wait(_BUSY_S if came else _QUIET_S)
            for task, reader in self._readers.items():
                view.lines(self._marks.mark(task, reader.end()))
        except BaseException as error:  # told by `finish`; the run goes on meanwhile
            self.error = error
        finally:
            if view:
                view.close()

    def _pass_on(self, view: View) -> bool:
        """Everything that the tasks have printed by now; whether there was anything."""
        came = False
        more = list(self._readers)
        while more:
            more = [task for task in more if self._pass_on_piece(task, view)]
            came = came or bool(more)
        return came

    def _pass_on_piece(self, task: str, view: View) -> bool:
        data, self._offsets[task] = self._read(task, self._offsets[task])
        if data:
            view.lines(self._marks.mark(task, without_noise(self._readers[task].feed(data))))
        return bool(data)

    def _tell(self, view: View) -> None:
        latest = self._latest
        if latest.waiting != self._waiting:
            view.lines(self._marks.own(waits(self._waiting, latest.waiting)))
            self._waiting = latest.waiting
        if latest.state is not self._told:
            view.lines(self._marks.own(news(self._spec, self._told, latest.state)))
            self._told = latest.state
