"""Threads that bring the store's news to the supervisor: the run's state, the members' changes, the store's loss."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from yurt.contract import names
from yurt.contract.state import RunState
from yurt.errors import StoreError
from yurt.kv.client import Store
from yurt.kv.errors import StoreRefused

_WAIT_S: Final = 60.0
#: Seconds after which a store that is away is worth a word.
_SAY_AFTER_S: Final = 3.0


def watch_state(
    store: Store,
    run_id: str,
    *,
    on_state: Callable[[RunState], None],
    lost_after_s: float | None,
    on_lost: Callable[[], None],
    on_wait: Callable[[str], None] | None = None,
) -> None:
    """Call `on_state` with every state seen, in a thread, and `on_lost` once if nobody listens at the store any more.

    States may be passed over: each is the whole truth, so the last one is enough. `on_wait` is told, in a sentence,
    that the store has been away for a while, and that it is back.
    """
    said = _Waiting(store.address, on_wait or (lambda _: None))

    def follow() -> None:
        index, refused_since, last = 0, 0.0, b""
        while True:
            try:
                index, entries = store.watch(names.state_key(run_id), index, _WAIT_S, recurse=False)
            except StoreRefused as error:
                said.away(error)
                index = 0  # so that its return is seen at once, not when the wait is over
                refused_since = refused_since or time.monotonic()
                if lost_after_s is not None and time.monotonic() - refused_since >= lost_after_s:
                    on_lost()
                    return
                time.sleep(0.2)
                continue
            except StoreError as error:
                said.away(error)
                index = 0
                time.sleep(1.0)
                continue
            said.back()
            refused_since = 0.0
            if entries and entries[0].value != last:
                last = entries[0].value
                on_state(RunState.loads(last))
            elif not entries:
                time.sleep(0.2)  # not written yet: a missing key wakes on every write of the whole store (Consul 1.8)

    threading.Thread(target=follow, name="state", daemon=True).start()


class _Waiting:
    """Says once that the store is away, and once that it is back."""

    def __init__(self, address: str, say: Callable[[str], None]) -> None:
        self._address = address
        self._say = say
        self._since: float | None = None
        self._told = False

    def away(self, error: StoreError) -> None:
        now = time.monotonic()
        self._since = self._since or now
        if not self._told and now - self._since >= _SAY_AFTER_S:
            self._told = True
            self._say(f"waiting for the key-value store at {self._address}: {error}")

    def back(self) -> None:
        if self._told and self._since is not None:
            self._say(f"the key-value store is back after {time.monotonic() - self._since:.0f} s")
        self._since, self._told = None, False


def watch_members(store: Store, run_id: str, on_change: Callable[[], None]) -> None:
    """Call `on_change`, in a thread, whenever any member of the run changes."""

    def follow() -> None:
        index = 0
        while True:
            try:
                index, _ = store.watch(f"{names.run_prefix(run_id)}members/", index, _WAIT_S, recurse=True)
            except StoreError:
                time.sleep(1.0)
                continue
            on_change()

    threading.Thread(target=follow, name="members", daemon=True).start()
