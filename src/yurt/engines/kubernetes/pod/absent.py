"""Notices tasks that nobody speaks for after a store came back empty: their agents were lost together with it."""

from __future__ import annotations

import time
from typing import Final

from yurt.contract.state import CHECKING, CLOSING, LOST, RUNNING, Exit, Member, RunState
from yurt.kv.run_store import RunStore

#: Seconds that an agent has to put its member back: the name of the store may lead to its old place for a minute.
PATIENCE_S: Final = 120.0
#: The same where an agent of the task is there, and waits: it remembers nothing, it is new.
NEW_S: Final = 20.0


class Absent:
    """How long each task of a gang that is past its joining has had no member, by this machine's clock."""

    def __init__(self, store: RunStore, patience_s: float = PATIENCE_S, new_s: float = NEW_S) -> None:
        self._store = store
        self._patience_s = patience_s
        self._new_s = new_s
        self._since: dict[tuple[int, str], float] = {}

    def look(self, state: RunState) -> list[str]:
        """Mark those lost that are absent for too long; their names. Raises StoreError."""
        if state.phase not in (CHECKING, RUNNING, CLOSING) or state.cluster is None:
            self._since.clear()
            return []
        present = self._store.members(state.generation)
        missing = [task for task in self._store.spec.gang if task not in present]
        now = time.monotonic()
        self._since = {(state.generation, task): self._since.get((state.generation, task), now) for task in missing}
        beats = self._store.beats() if missing else {}
        lost = []
        for task in missing:
            patience_s = self._new_s if task in beats else self._patience_s
            if now - self._since[state.generation, task] < patience_s or self._store.is_done(task):
                continue
            role, _, index = task.partition("/")
            attempt = state.attempts.get(task, 0)
            message = "nothing was heard of it since the run's state was lost with the keeper's pod"
            end = Exit(code=137, reason="lost", at=time.time(), attempt=attempt, message=message)
            member = Member(task, "", state.cluster[role][int(index)], LOST, attempt, exit=end)
            if self._store.put_member(state.generation, member, cas=0):
                lost.append(task)
        return lost
