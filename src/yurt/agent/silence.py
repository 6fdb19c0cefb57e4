"""Notices members that have fallen silent: their machine is gone, and nobody brings them back or says so."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Final

from yurt.contract import names
from yurt.contract.state import EXITED, LOST
from yurt.errors import StoreError
from yurt.kv.losing import lose
from yurt.kv.run_store import RunStore

#: As many looks in the time after which a member is taken for lost.
_LOOKS: Final = 6


class Silence:
    """How long each task's heartbeat has stood still, by this machine's clock alone: other clocks may be wrong."""

    def __init__(self, after_s: float) -> None:
        self._after_s = after_s
        self._seen: dict[str, tuple[int, float]] = {}

    def silent(self, beats: Mapping[str, int], now: float) -> list[str]:
        """The tasks whose beat has not changed for `after_s` seconds.

        `beats` is each task's index of its last beat in the store, `now` a monotonic time in seconds. A task that has
        never beaten is not silent: the start's deadline is for it.
        """
        for task, index in beats.items():
            if task not in self._seen or self._seen[task][0] != index:
                self._seen[task] = (index, now)
        return [task for task in beats if now - self._seen[task][1] >= self._after_s]

    def forget(self) -> None:
        """Nobody could be heard for a while: from the next look on everybody has the whole time again."""
        self._seen.clear()


def watch_silence(store: RunStore, after_s: float, on_lost: Callable[[], None]) -> None:
    """Mark silent members lost, in a thread, and call `on_lost` after each."""
    prefix = names.beats_prefix(store.spec.run_id)
    silence = Silence(after_s)

    def follow() -> None:
        while True:
            time.sleep(after_s / _LOOKS)
            try:
                beats = {entry.key[len(prefix) :]: entry.modify_index for entry in store.store.list(prefix)}
                if tasks := silence.silent(beats, time.monotonic()):
                    state, _ = store.read()
                    members = store.members(state.generation)
                    for task in tasks:
                        member = members.get(task)
                        if member is None or member.status in (EXITED, LOST):
                            continue
                        if lose(store, state.generation, task, member.allocation, f"no sign of life for {after_s:g} s"):
                            on_lost()
            except StoreError:
                silence.forget()  # a store that is away has no silent members, nor has one that has just come back

    threading.Thread(target=follow, name="silence", daemon=True).start()
