"""A run's keys, typed: the one place that knows how state, members and heartbeats lie in the store."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Final

from yurt.contract import names
from yurt.contract.decide import decide
from yurt.contract.spec import RunSpec
from yurt.contract.state import Beat, Member, RunState
from yurt.errors import StoreError
from yurt.kv.client import Store

#: A compare-and-set that loses this often in a row is a fault of ours, not bad luck.
_MOST_TRIES: Final = 1000


class RunStore:
    """State, members and heartbeats of one run in a key-value store.

    Every method raises `yurt.errors.StoreError` (or a subclass) where the store cannot be spoken to.
    """

    def __init__(self, store: Store, spec: RunSpec, clock: Callable[[], float] = time.time) -> None:
        self.store = store
        self.spec = spec
        self._clock = clock

    def create(self) -> None:
        """Write the first state; a run that is already there is left as it is."""
        self.store.put(names.state_key(self.spec.run_id), RunState.first(self._clock()).dumps(), cas=0)

    def read(self) -> tuple[RunState, int]:
        """The state and its index for `swap`; StoreError where the run is not in the store."""
        entry = self.store.get(names.state_key(self.spec.run_id))
        if entry is None:
            raise StoreError(f"run {self.spec.run_id} is not in the key-value store")
        return RunState.loads(entry.value), entry.modify_index

    def swap(self, state: RunState, index: int) -> bool:
        """Move the state on if it is still the one read at `index`."""
        return self.store.put(names.state_key(self.spec.run_id), state.dumps(), cas=index)

    def change(self, how: Callable[[RunState], RunState | None]) -> RunState:
        """Apply `how` until it returns None or its result is stored; the state that stands then."""
        for _ in range(_MOST_TRIES):
            state, index = self.read()
            new = how(state)
            if new is None:
                return state
            if self.swap(new, index):
                return new
        raise StoreError(f"the state of run {self.spec.run_id} could not be moved on")

    def advance(self) -> RunState:
        """Do what `decide` says until there is nothing to do; the state that stands then."""
        for _ in range(_MOST_TRIES):
            state, index = self.read()
            if state.verdict is not None:
                return state
            new = decide(self.spec, state, self.members(state.generation), self._clock())
            if new is None:
                return state
            self.swap(new, index)
        raise StoreError(f"the state of run {self.spec.run_id} could not be moved on")

    def members(self, generation: int) -> dict[str, Member]:
        """Members of a generation by task name."""
        entries = self.store.list(names.members_prefix(self.spec.run_id, generation))
        members = (Member.loads(entry.value, entry.modify_index) for entry in entries)
        return {member.task: member for member in members}

    def member(self, generation: int, task: str) -> tuple[Member | None, int]:
        """One member and its index for a compare-and-set; (None, 0) where it has not joined."""
        entry = self.store.get(names.member_key(self.spec.run_id, generation, task))
        return (Member.loads(entry.value, entry.modify_index), entry.modify_index) if entry else (None, 0)

    def put_member(self, generation: int, member: Member, *, cas: int | None = None) -> bool:
        """Write a member."""
        return self.store.put(names.member_key(self.spec.run_id, generation, member.task), member.dumps(), cas=cas)

    def put_beat(self, task: str, beat: Beat) -> None:
        """Write a heartbeat."""
        self.store.put(names.beat_key(self.spec.run_id, task), beat.dumps())

    def beats(self) -> dict[str, Beat]:
        """The last heartbeat of each task."""
        prefix = names.beats_prefix(self.spec.run_id)
        return {entry.key[len(prefix) :]: Beat.loads(entry.value) for entry in self.store.list(prefix)}

    def mark_done(self, task: str, generation: int, attempt: int) -> None:
        """This task exited 0: it is not run again, whoever brings its agent back."""
        value = json.dumps({"generation": generation, "attempt": attempt}).encode()
        self.store.put(names.done_key(self.spec.run_id, task), value)

    def is_done(self, task: str) -> bool:
        """Whether the task has exited 0."""
        return self.store.get(names.done_key(self.spec.run_id, task)) is not None
