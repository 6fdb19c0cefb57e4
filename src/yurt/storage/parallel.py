"""A few things at a time, with an end that nothing can delay."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable
from typing import Any, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")


def for_each(items: Iterable[T], action: Callable[[T], None], *, at_once: int) -> None:
    """Do `action` for every item, `at_once` at a time; the first exception ends it and is raised.

    After an error it waits for what is under way, so that nothing goes on behind the caller's back. A signal
    (a BaseException that is no Exception) ends it at once: the threads are daemons and the caller waits in
    Python, not in them.
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

    threads = [threading.Thread(target=work, name="yurt-storage", daemon=True) for _ in range(min(at_once, count))]
    try:
        for thread in threads:
            thread.start()
        error = next((e for e in (done.get() for _ in range(count)) if e is not None), None)
    finally:
        stop.set()
    if error is None:
        return
    for thread in threads:
        thread.join()
    raise error


def interruptible(action: Callable[[], R]) -> R:
    """The result of `action`, such that a signal is acted upon while it is under way.

    Python runs signal handlers in the main thread between its own instructions, so never while native code
    has it: there, `action` is done by another thread and the main one waits.
    """
    if threading.current_thread() is not threading.main_thread():
        return action()
    done: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

    def work() -> None:
        try:
            done.put((True, action()))
        except BaseException as error:  # carried to the caller, which raises it
            done.put((False, error))

    threading.Thread(target=work, name="yurt-storage", daemon=True).start()
    worked, result = done.get()
    if not worked:
        raise result
    return cast("R", result)
