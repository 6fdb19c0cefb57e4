"""Beside a run whose store is in its cluster, in a pod of the run's own: the keeper.

As `yurt.launcher.remote_host`, but nothing of the run is outside of the cluster: its store comes up with its pods, is
reached through the cluster's own API, and goes with them; how the run ended is then in the keeper's last words.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from yurt.contract import decide
from yurt.contract.state import (
    BROKEN,
    CANCELLED,
    DEADLINE,
    EXITED,
    PUBLISH_FAILED,
    Cause,
    Exit,
    Member,
    RunState,
    Verdict,
)
from yurt.engines.base import Allocation, AllocationState, Keeps, Place
from yurt.errors import EngineError, StoreError
from yurt.kv.client import Store
from yurt.kv.run_index import RunIndex
from yurt.kv.run_store import RunStore
from yurt.kv.watching import watch_state
from yurt.launcher.agent_zip import agent_zip
from yurt.launcher.collecting import Collector
from yurt.launcher.records import Snapshot
from yurt.launcher.remote_host import RemoteHost, RunGone
from yurt.launcher.together import few, together
from yurt.launcher.waking import rest

#: Seconds beyond the start's deadline until a run whose keeper was never heard is given up.
_PATIENCE_S: Final = 15.0
#: Seconds for which whoever takes a run on waits for a first word of it, and between two tries.
_FIRST_S: Final = 5.0
_PAUSE_S: Final = 0.2
#: Seconds between two writings of a snapshot that has not changed.
_WRITE_S: Final = 1.0


class InsideHost(RemoteHost):
    """One run, from its submission or its adoption to its end."""

    _heard = False  # whether the store has ever answered
    _token = ""

    def start(self) -> None:
        """Submit the run. Raises YurtError; nothing is left behind then."""
        self._token = secrets.token_urlsafe(24)
        try:
            self.folder.write_snapshot(self.snapshot)
            place = Place(folder=self.folder.path, agent=agent_zip(), store="", token=self._token)
            facts = self.engine.facts(self._options)
            request: Mapping[str, Any] = self.engine.render(self.spec, place, self._options, facts)
            self.notes = list(request.get("notes", ()))
            self._adopts.on_handle = self._announce
            self.engine.submit(request)
            self.notes += self._adopts.notes
            self._begin()
        except BaseException:
            with contextlib.suppress(EngineError):
                self.engine.cancel()
            self.folder.forget_remote()
            self.folder.forget_host()
            raise

    def attach(self) -> None:
        """Take on a run that was submitted by a process that is gone."""
        handle = self.folder.remote()
        assert handle is not None
        self._adopt(handle["engine"])
        if self._keeps.gone():
            self.engine.cancel()
            raise RunGone("its objects are gone from the cluster: nothing is known of its end")
        last = self.folder.snapshot()
        if last is not None:
            self.snapshot = last
        self._begin()
        end = time.monotonic() + _FIRST_S
        while not self._heard and self.snapshot.state.verdict is None and time.monotonic() < end:
            with contextlib.suppress(EngineError, StoreError):
                self._look()
            rest(self._wakes, _PAUSE_S)

    def let_go(self, *, by: str) -> list[str]:
        """End what can be reached of a run whose cluster does not answer, and forget the rest; what that is."""
        handle = self.folder.remote()
        assert handle is not None
        self._adopts.adopt(handle["engine"])
        left = self._end_if_there()
        self._end_locally(Verdict(CANCELLED, f"stopped by {by}"))
        self.folder.forget_remote()
        return left

    # How.

    @property
    def _keeps(self) -> Keeps:
        assert isinstance(self.engine, Keeps)
        return self.engine

    def _begin(self) -> None:
        address, self._token = self._keeps.store()
        self._store = Store(address, self._token)
        self._runs = RunStore(self._store, self.spec)
        self._index = RunIndex(self._store)
        self.folder.write_host(address, self._token)
        self._note()
        watch_state(
            self._store, self.spec.run_id, on_state=lambda _: self._wakes.put(None), lost_after_s=None, on_lost=_ignore
        )
        self.engine.describe()
        self._collector = Collector(self.folder, self.engine, [task.name for task in self.spec.tasks], self._note)
        self._collector.catch_up()
        self._collector.start()

    def _announce(self) -> None:
        self._note(submitted=False)

    def _note(self, *, submitted: bool = True) -> None:
        self.folder.write_remote({"store": "", "engine": self._adopts.handle(), "submitted": submitted})

    def _look(self) -> bool:
        """One look at everything; True once the run is over."""
        allocations = self.engine.describe()
        told = self._keeps.waiting()
        self._reasons = {task: reason for task, (reason, _) in told.items()}
        if (words := self._keeps.last_words()) is not None:
            return self._take(words)
        try:
            state = self._move_on(allocations)
        except StoreError:
            verdict = self._without_state() or _hopeless(told)
            if verdict is None and not self._heard:
                verdict = _could_not_begin(allocations)
            if verdict is not None:
                self._end_locally(verdict)
                return True
            self._show(self.snapshot.state)
            return False
        self._heard = True
        if state.verdict is None and (hopeless := _hopeless(told)) is not None:
            state = self._end(hopeless)
        self._show(state)
        return state.verdict is not None and self._left(allocations, state)

    def _move_on(self, allocations: list[Allocation]) -> RunState:
        if self._stop_wish is not None:
            at_once, by = self._stop_wish
            self._runs.change(lambda state: decide.stop(self.spec, state, time.time(), at_once=at_once, by=by))
            self._stop_wish = None
        state = self._runs.advance()
        if state.verdict is None:
            self._keeps.look_after(self._runs)
            state = self._tell(allocations, state)
        if state.verdict is not None and state.verdict.outcome == DEADLINE and state.verdict.hint is None:
            state = self._explain(state)
        return state

    def _without_state(self) -> Verdict | None:
        """How the run must end where its store does not answer: stopped, removed, or its keeper never came."""
        now = time.time()
        by = None
        if self._stop_wish is not None and (self._stop_wish[0] or not self._heard):
            by = self._stop_wish[1]
        by = by or self.folder.who_lets_go()
        if by is not None:
            return Verdict(CANCELLED, f"stopped by {by}")
        if self._keeps.gone():
            return Verdict(CANCELLED, "its objects were removed from the cluster by somebody else")
        if not self._heard and now > self.spec.submitted_at + self.spec.start_deadline_s + _PATIENCE_S:
            missing = few(sorted(self._reasons)) or "the keeper"
            message = f"the run did not come up within its start deadline: {missing} missing"
            return Verdict(DEADLINE, message, hint=together(self._reasons) or None)
        return None

    def _take(self, words: Mapping[str, Any]) -> bool:
        """The keeper has gone: its last words are the end of the run."""
        if self.snapshot.state.verdict is None:
            value = words.get("verdict")
            broken = Verdict(BROKEN, "the pod that kept the run's state ended without a verdict")
            self._end_locally(Verdict.from_json(value) if value else broken, words)
        return True

    def _end_locally(self, verdict: Verdict, words: Mapping[str, Any] | None = None) -> None:
        told = words or {}
        last = self.snapshot.state
        if last.verdict is None:
            state = replace(last.ended(verdict, told.get("at") or time.time(), 0.0), published=told.get("published"))
            state = replace(state, **{key: told[key] for key in ("generation", "restarts") if key in told})
            with contextlib.suppress(ValueError, KeyError, TypeError):
                state = replace(state, causes=tuple(Cause(**each) for each in told["causes"]) or state.causes)
            members = {**self.snapshot.members, **_members(told.get("members", {}))}
            self.snapshot = Snapshot(state, members, self.snapshot.beats)
        self.folder.write_snapshot(self.snapshot)

    def _show(self, state: RunState) -> None:
        """Remember what was seen, with what is waited for."""
        waiting = {} if state.verdict else self._reasons
        now = time.monotonic()
        news = state != self.snapshot.state or waiting != self.snapshot.waiting
        if not news and state.verdict is None and now - self._written_at < _WRITE_S:
            return
        members, beats = self.snapshot.members, self.snapshot.beats
        with contextlib.suppress(StoreError):
            if self._heard:
                members, beats = self._runs.members(state.generation), self._runs.beats()
                if state.generation == self.snapshot.state.generation:
                    # A store that came up anew has them all only when every agent has found it again.
                    members = {**self.snapshot.members, **members}
        self.snapshot = Snapshot(state, members, beats, waiting)
        self.folder.write_snapshot(self.snapshot)
        self._written_at = now

    def _close(self) -> None:
        """The run is over: take the last lines, and remove what is left of it from the cluster."""
        self._collector.finish()
        if self._collector.problem:
            self.notes.append(f"the tasks' output could not be read to its end: {self._collector.problem}")
        self.folder.write_snapshot(self.snapshot)
        verdict = self.snapshot.state.verdict
        if verdict is not None and verdict.outcome == PUBLISH_FAILED:
            self._keeps.let_go()  # the pod with the model stays for a while
            self.folder.forget_remote()
        else:
            try:
                self.engine.cancel()
                self.folder.forget_handle()
            except EngineError as error:
                self.notes.append(f"what the run had in the cluster could not be removed: {error}")
        self.folder.forget_host()


def _could_not_begin(allocations: list[Allocation]) -> Verdict | None:
    """An agent has ended by itself before the run's state was there: its place has not what it needs."""
    for each in allocations:
        if each.state is AllocationState.ENDED and each.exit_code:
            reason = (each.reason or f"exit code {each.exit_code}").removeprefix("yurt: ")
            return Verdict(BROKEN, f"{each.task} on {each.placed_on} could not begin: {reason}", task=each.task)
    return None


def _hopeless(told: Mapping[str, tuple[str, bool]]) -> Verdict | None:
    """The run can never start: it is not left to its deadline."""
    never = {task: reason for task, (reason, hopeless) in told.items() if hopeless}
    if not never:
        return None
    task, reason = next(iter(never.items()))
    more = f" (and so {', '.join(list(never)[1:5])})" if len(never) > 1 else ""
    return Verdict(BROKEN, f"{task} can never start: {reason}{more}")


def _members(told: Mapping[str, Any]) -> dict[str, Member]:
    """As they stand in a keeper's last words: ``{task: {"exit": ..., "placed_on": ...}}``."""
    found = {}
    for task, value in told.items():
        with contextlib.suppress(ValueError, KeyError, TypeError):
            end = Exit.from_json(value["exit"]) if value.get("exit") else None
            found[task] = Member(task, "", "", EXITED, placed_on=value.get("placed_on", ""), exit=end)
    return found


def _ignore() -> None:
    pass
