"""Writes checkpoints behind the training: values are copied first, the file is written by another thread."""

from __future__ import annotations

import threading
from collections.abc import Callable

from yurt.training.errors import TrainingError


class Writer:
    """At most one file is under way: a second one waits for the first. Its thread ends before Python does."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None

    def put(self, write: Callable[[], object]) -> None:
        """Call `write` in the background. Raises TrainingError if the one before failed."""
        self.wait()
        self._thread = threading.Thread(target=self._run, args=(write,), name="yurt-checkpoint")
        self._thread.start()

    def wait(self) -> None:
        """Return when nothing is under way. Raises TrainingError if it failed; what was kept before is still there."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        error, self._error = self._error, None
        if isinstance(error, TrainingError):
            raise error
        if error is not None:
            raise TrainingError(f"a checkpoint could not be written: {error}") from error

    def _run(self, write: Callable[[], object]) -> None:
        try:
            write()
        except Exception as error:  # whatever it is, the training hears of it
            self._error = error
