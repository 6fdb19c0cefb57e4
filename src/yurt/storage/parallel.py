"""A few things at a time, with an end that nothing can delay."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

T = TypeVar("T")


def for_each(items: Iterable[T], action: Callable[[T], None], *, at_once: int) -> None:
    """Do `action` for every item, `at_once` at a time; the first exception ends it and is raised.

    The threads are daemons and the caller waits in Python, not in them: a signal or an error is acted upon
    at once, while a request that is under way ends by its own time-out.
    """
    waiting: queue.SimpleQueue[T] = queue.SimpleQueue()
    count = 0
    for count, item in enumerate(items, 1):  # noqa: B007
        waiting.put(item)
    done: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            try:
                item = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                action(item)
            except BaseException as error:  # carried to the caller, which raises it
                done.put(error)
                return
            done.put(None)

    for _ in range(min(at_once, count)):
        threading.Thread(target=work, name="yurt-storage", daemon=True).start()
    try:
        for _ in range(count):
            error = done.get()
            if error is not None:
                raise error
    finally:
        stop.set()
