"""The keeper's store in a file: a container that starts again in its pod has all of it."""
# The agent does without pathlib, and this is the agent's process:
# ruff: noqa: PTH105, PTH123

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Sequence

from yurt.kv.state import State
from yurt.kv.values import Entry


class StateFile:
    """All keys of a store that is served here, as they were when `write` last found them changed.

    Keys that begin with `seldom` change all the time and alone are no reason to write.
    """

    def __init__(self, path: str, state: State, seldom: str) -> None:
        self._path = path
        self._state = state
        self._seldom = seldom
        self._written = -1

    def restore(self) -> bool:
        """Fill the store, its keys in the order of their last change; False where there is no file that can be read."""
        try:
            with open(self._path, "rb") as file:
                rows = json.loads(zlib.decompress(file.read()))
            values = [(key, base64.b64decode(value)) for key, value in rows]
        except (OSError, ValueError, TypeError, zlib.error):
            return False
        for key, value in values:
            self._state.put(key, value)
        return bool(values)

    def write(self, *, seldom: bool = False) -> None:
        """Write what has changed, whole or not at all; with `seldom` also for those keys alone.

        A disk that takes nothing is said once by nobody: the agents remember what is lost then.
        """
        entries = self._state.list("")
        newest = max(
            (entry.modify_index for entry in entries if seldom or not entry.key.startswith(self._seldom)), default=0
        )
        if newest <= self._written:
            return
        part = f"{self._path}.part"
        try:
            with open(part, "wb") as file:
                file.write(zlib.compress(_rows(entries), 1))
                file.flush()
                os.fsync(file.fileno())
            os.replace(part, self._path)
        except OSError:
            return
        self._written = newest


def _rows(entries: Sequence[Entry]) -> bytes:
    ordered = sorted(entries, key=lambda entry: entry.modify_index)
    return json.dumps([(entry.key, base64.b64encode(entry.value).decode()) for entry in ordered]).encode()
