"""Tasks whose agents were told to go, in the way of the training operator.

There one pod that is deleted takes all others with it. So an agent that is told to go does not say that it is lost:
each would count as one restart. Whoever follows the TFJob counts the loss once (`resubmit`). What that does not see is
seen here: a pod that was stopped and made again in a TFJob that lives, and a run that nobody submits again.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Final

from yurt.contract import names
from yurt.contract.state import BROKEN, EXITED, LOST, Exit, Member, RunState, Verdict
from yurt.kv.run_store import RunStore

#: Seconds in which an agent that goes may still send a heartbeat.
_LAST_BEAT_S: Final = 5.0


@dataclass(slots=True)
class _Seen:
    since: float
    beat: int


class Stopped:
    """Those of the generation that is, by this machine's clock; `give_up_s` is how long they are waited for."""

    def __init__(self, runs: RunStore, give_up_s: float) -> None:
        self._runs = runs
        self._give_up_s = give_up_s
        self._seen: dict[tuple[int, str], _Seen] = {}

    def look(self, state: RunState) -> bool:
        """Whether something was done that moves the run on. Raises StoreError."""
        members = self._runs.members(state.generation)
        stopped = {task: member for task, member in members.items() if _was_stopped(member)}
        if not stopped:
            self._seen.clear()
            return False
        prefix = names.beats_prefix(self._runs.spec.run_id)
        beats = {entry.key[len(prefix) :]: entry.modify_index for entry in self._runs.store.list(prefix)}
        now, done = time.monotonic(), False
        for task, member in stopped.items():
            beat = beats.get(task, 0)
            seen = self._seen.setdefault((state.generation, task), _Seen(now, beat))
            if now - seen.since < _LAST_BEAT_S:
                seen.beat = beat
            elif beat != seen.beat:
                done = self._lose(state, member) or done
        if not done and all(_has_ended(members.get(task)) for task in self._runs.spec.gang):
            since = min(seen.since for (generation, _), seen in self._seen.items() if generation == state.generation)
            return now - since > self._give_up_s and self._end()
        return done

    def _lose(self, state: RunState, member: Member) -> bool:
        message = "its pod was stopped and made again"
        end = Exit(code=137, reason="lost", at=time.time(), attempt=member.attempt, message=message)
        return self._runs.put_member(state.generation, replace(member, status=LOST, exit=end), cas=member.order)

    def _end(self) -> bool:
        verdict = Verdict(
            BROKEN,
            f"its TFJob is over, and nobody has submitted it again for {self._give_up_s:g} s",
            hint="`yurt kubernetes prepare` makes the account by which a run does that itself",
        )
        now = time.time()
        self._runs.change(lambda state: None if state.verdict else state.ended(verdict, now, 0.0))
        return True


def _was_stopped(member: Member) -> bool:
    return member.status == EXITED and member.exit is not None and member.exit.reason == "stopped"


def _has_ended(member: Member | None) -> bool:
    return member is not None and member.status in (EXITED, LOST)
