"""What a host does between two looks at its run: it rests until something happens."""

from __future__ import annotations

import queue


def rest(wakes: queue.SimpleQueue[None], look_s: float) -> None:
    """Until something wakes the host, or `look_s` seconds have passed; what has come meanwhile is one waking."""
    try:
        wakes.get(timeout=look_s)
        while True:
            wakes.get_nowait()
    except queue.Empty:
        pass
