"""Fills a store that has lost what it held: each agent remembers the newest state, and what it has written itself.

A store that lives in one pod comes back empty when that pod is lost. It then writes a run's first state; whoever
remembers a later one puts it back by compare-and-set, and *then* what is its own: the mark that its task is done, its
member, its last heartbeat. In this order: who sees a member of one that remembers sees no state older than that one's,
so that nobody decides anything by members of a run that he takes for a new one.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

from yurt.contract import names
from yurt.contract.config import AgentConfig
from yurt.contract.remembered import is_later
from yurt.contract.state import LOST, STARTED, Beat, Member, RunState
from yurt.errors import StoreError
from yurt.kv.client import Store
from yurt.kv.run_store import RunStore

_WAIT_S: Final = 60.0
_RETRY_S: Final = 0.5
#: Seconds without a store after which an agent whose process does not run gives it up for good.
GONE_S: Final = 600.0


class RememberingStore(RunStore):
    """A run's store as one agent sees it, which gives back what the store has lost; safe for threads."""

    def __init__(self, store: Store, config: AgentConfig) -> None:
        super().__init__(store, config.run)
        self._task = config.task
        self._allocation = config.allocation
        self._lock = threading.Lock()
        self._state: RunState | None = None
        self._generation = -1
        self._member: Member | None = None
        self._done: tuple[int, int] | None = None
        self._beat: Beat | None = None

    @property
    def newest(self) -> RunState | None:
        """The newest state that was seen; None before the first."""
        with self._lock:
            return self._state

    @property
    def own(self) -> Member | None:
        """This agent's member, as written last."""
        with self._lock:
            return self._member

    def see(self, state: RunState) -> bool:
        """Remember a state; whether it is at least as late as all that were seen."""
        with self._lock:
            if self._state is not None and is_later(self._state, state):
                return False
            self._state = state
            return True

    def read(self) -> tuple[RunState, int]:
        """The state, never older than one that was seen."""
        while True:
            entry = self.store.get(names.state_key(self.spec.run_id))
            if entry is not None and self.see(found := RunState.loads(entry.value)):
                return found, entry.modify_index
            if self.newest is None:
                raise StoreError(f"run {self.spec.run_id} is not in the key-value store")
            self._put_back(entry.modify_index if entry else 0)

    def swap(self, state: RunState, index: int) -> bool:
        """Move the state on, and remember it."""
        if not super().swap(state, index):
            return False
        self.see(state)
        return True

    def put_member(self, generation: int, member: Member, *, cas: int | None = None) -> bool:
        """Write a member; where it is this agent's own, remember it."""
        own = member.task == self._task and member.allocation == self._allocation
        if own and cas is None:
            self._remember(generation, member)  # also where the store is away: this is what it is
        done = super().put_member(generation, member, cas=cas)
        if own and done:
            self._remember(generation, member)
        return done

    def put_beat(self, task: str, beat: Beat) -> None:
        """Write a heartbeat."""
        if task == self._task:
            with self._lock:
                self._beat = beat
        super().put_beat(task, beat)

    def mark_done(self, task: str, generation: int, attempt: int) -> None:
        """This task exited 0."""
        if task == self._task:
            with self._lock:
                self._done = (generation, attempt)
        super().mark_done(task, generation, attempt)

    def refill(self) -> None:
        """Give back what is missing or older, as in a store that was restored from a file. Raises StoreError.

        What others have written is left: who has the seat, and that this agent is taken for lost.
        """
        with self._lock:
            if self._state is None:
                return
            done, generation, member, beat = self._done, self._generation, self._member, self._beat
        state, _ = self.read()
        if done is not None and not self.is_done(self._task):
            self.mark_done(self._task, *done)
        if member is not None and state.generation == generation:
            there, index = self.member(generation, self._task)
            older = there is not None and there.allocation == self._allocation and there.status != LOST
            if (there is None or older) and self.own is member:  # else a newer one is on its way
                super().put_member(generation, member, cas=index)
        if beat is not None:
            self.store.put(names.beat_key(self.spec.run_id, self._task), beat.dumps(), cas=0)

    def _put_back(self, index: int) -> None:
        newest = self.newest
        assert newest is not None
        self.store.put(names.state_key(self.spec.run_id), newest.dumps(), cas=index)

    def _remember(self, generation: int, member: Member) -> None:
        with self._lock:
            self._generation, self._member = generation, member


def keep_filled(
    store: RememberingStore, on_gone: Callable[[str], None], *, never_s: float, gone_s: float = GONE_S
) -> None:
    """Fill the store whenever it has come back without its keys, in a thread; and say once that it is gone for good.

    `on_gone` is told, in a sentence, that the store has not answered for `never_s` seconds since the beginning, or for
    `gone_s` seconds after that while no process of this task runs. One that runs is waited for.
    """
    key = names.state_key(store.spec.run_id)

    def follow() -> None:
        index, created, whole = 0, -1, False
        answered, since = False, time.monotonic()
        while True:
            try:
                index, entries = store.store.watch(key, index, _WAIT_S, recurse=False)
                answered, since = True, time.monotonic()
                old = not entries or not store.see(RunState.loads(entries[0].value))
                if old or not whole or entries[0].create_index != created:
                    whole = False
                    store.refill()
                    whole = bool(entries)
                created = entries[0].create_index if entries else -1
                if not entries:
                    time.sleep(_RETRY_S)  # a missing key wakes on every write of the whole store
            except StoreError as error:
                index, whole = 0, False
                away_s = time.monotonic() - since
                if away_s > (gone_s if answered else never_s) and not (answered and _runs(store.own)):
                    since_when = "" if answered else " since this pod began"
                    on_gone(f"nobody has answered at the run's store for {away_s:.0f} s{since_when}: {error}")
                    return
                time.sleep(_RETRY_S)

    threading.Thread(target=follow, name="remember", daemon=True).start()


def _runs(member: Member | None) -> bool:
    return member is not None and member.status == STARTED and member.exit is None
