"""A watch that remembers where it was, and that another thread can end."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from yurt.kv.errors import StoreClosed

if TYPE_CHECKING:
    from collections.abc import Callable

    from yurt.kv.values import Snapshot


class StoreWatch:
    """The state of a key or prefix, again and again.

    `look(index, wait_s)` makes one blocking query; `end` makes a query under way raise StoreClosed.
    """

    def __init__(self, look: Callable[[int, float], Snapshot], end: Callable[[], None]) -> None:
        self._look = look
        self._end = end
        self._index = 0
        self._closed = threading.Event()

    def next(self, wait_s: float = 300.0) -> Snapshot | None:
        """The state at once the first time, later when it has changed or `wait_s` have passed.

        None after `close`. After an error, which is raised, the next call again answers at once: the
        store may have been replaced by an empty one with lower indexes.
        """
        if self._closed.is_set():
            return None
        try:
            found = self._look(self._index, wait_s)
        except StoreClosed:
            self._closed.set()
            return None
        except Exception:
            self._index = 0
            if self._closed.is_set():
                return None
            raise
        self._index = found.index
        return found

    def close(self) -> None:
        """End it: a thread blocked in `next` gets None at once. Never raises."""
        self._closed.set()
        self._end()
