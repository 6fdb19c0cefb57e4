"""The bar that `write` shows on a terminal."""

from __future__ import annotations

import sys
from threading import Lock
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self  # Python 3.11


class Bar:
    """Rows done, of so many if that is known; on standard error, and only on a terminal unless told otherwise."""

    def __init__(self, what: str, total: int | None, *, shown: bool | None = None) -> None:
        self._what, self._total = what, total
        self._shown = sys.stderr.isatty() if shown is None else shown
        self._lock = Lock()
        self._bar: Any = None
        self._task: Any = None

    def add(self, rows: int) -> None:
        """So many more are done."""
        if self._bar is not None:
            with self._lock:
                self._bar.advance(self._task, rows)

    def __enter__(self) -> Self:
        if self._shown:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

            self._bar = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("rows"),
                TimeRemainingColumn(),
                console=Console(file=sys.stderr, stderr=True),
                transient=True,
            )
            self._task = self._bar.add_task(self._what, total=self._total)
            self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()
