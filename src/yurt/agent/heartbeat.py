"""Says that a task lives and how far it is."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable
from typing import Any, Final

from yurt.contract.state import Beat
from yurt.errors import StoreError

#: A task whose progress stands still says so this often, in intervals: a beat must change to be one.
_SILENT_INTERVALS: Final = 10


class Heartbeat:
    """Calls `send` with a new beat each `interval_s` if the progress has changed, else every tenth time."""

    def __init__(self, interval_s: float, progress: Callable[[], dict[str, Any]], send: Callable[[Beat], None]) -> None:
        self._interval_s = interval_s
        self._progress = progress
        self._send = send
        self._sent: dict[str, Any] | None = None
        self._lock = threading.Lock()

    def start(self) -> None:
        """Beat from now on, in a thread."""
        threading.Thread(target=self._beat, name="beat", daemon=True).start()

    def _beat(self) -> None:
        silent = 0
        while True:
            silent = 0 if self.now(force=silent >= _SILENT_INTERVALS) else silent + 1
            time.sleep(self._interval_s)

    def now(self, *, force: bool = True) -> bool:
        """Send a beat at once; without `force` only if the progress is news. True if one was sent."""
        with self._lock:
            progress = self._progress()
            if progress == self._sent and not force:
                return False
            try:
                self._send(Beat(at=time.time(), progress=progress))
            except StoreError:
                return False  # the next one may come through
            self._sent = progress
            return True


def read_progress(folder: str) -> dict[str, Any]:
    """What the script itself says of its progress, and what `yurt.data` says of bad rows that it left out.

    Two files of the folder: ``progress.json`` and ``data.json`` (docs/data.md), whose sets become
    ``"skipped": {"data/train": 3}``. Empty where they say nothing, or nothing that can be read.
    """
    progress = _object(os.path.join(folder, "progress.json"))
    if skipped := _skipped(_object(os.path.join(folder, "data.json")).get("sets")):
        progress["skipped"] = skipped
    return progress


def _skipped(sets: Any) -> dict[str, int]:
    found: dict[str, int] = {}
    for each in sets if isinstance(sets, list) else ():
        if isinstance(each, dict) and isinstance(count := each.get("skipped"), int) and count > 0:
            found[str(each.get("path"))] = count
    return found


def _object(path: str) -> dict[str, Any]:
    try:
        with open(path, encoding="utf-8") as file:
            value = json.load(file)
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
