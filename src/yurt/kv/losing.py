"""Says in the store that a member is lost, on behalf of one that cannot any more."""

from __future__ import annotations

import time
from dataclasses import replace

from yurt.contract.state import EXITED, LOST, Exit
from yurt.kv.run_store import RunStore


def lose(store: RunStore, generation: int, task: str, allocation: str | None, message: str) -> bool:
    """Mark a task's member of this generation lost; whether that is news.

    `allocation` is what the seat's holder must begin with, None for anybody's. A member whose process has ended
    already is left as it is, and so is one that has just changed: it lives. Raises StoreError.
    """
    member, index = store.member(generation, task)
    if member is None or member.status in (EXITED, LOST):
        return False
    if allocation is not None and not member.allocation.startswith(allocation):
        return False
    end = Exit(code=137, reason="lost", at=time.time(), attempt=member.attempt, message=message)
    return store.put_member(generation, replace(member, status=LOST, exit=end), cas=index)
