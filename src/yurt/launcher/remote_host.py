"""Beside a run that lives on a cluster: submits it, shows it, stops it; the run needs none of this to go on.

Its state is in Consul, where its agents move it on by themselves. This process looks on, copies the tasks' output and
the last state into the run's folder, and says to the agents what only the engine knows: that a machine is gone, that
an allocation will never start. If it is killed, the next verb that asks for the run starts another (`attach`).
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic import BaseModel

from yurt.contract import decide, names
from yurt.contract.spec import RunSpec
from yurt.contract.state import BROKEN, CANCELLED, DEADLINE, RunState, Verdict
from yurt.engines.base import Adopts, Allocation, AllocationState, Engine, Place, Reminds
from yurt.engines.log_file import read_from
from yurt.errors import EngineError, LauncherError, StoreError
from yurt.kv.client import Store
from yurt.kv.environment import settings_from_environment
from yurt.kv.losing import lose
from yurt.kv.run_index import RunIndex
from yurt.kv.run_store import RunStore
from yurt.kv.watching import watch_state
from yurt.launcher.agent_zip import agent_zip
from yurt.launcher.collecting import Collector
from yurt.launcher.consul import explained, open_store, wait_for
from yurt.launcher.kept import close, read
from yurt.launcher.records import RunFolder, Snapshot
from yurt.launcher.together import together
from yurt.launcher.waking import rest

#: Seconds between two looks while nothing wakes the host, and once the verdict stands.
_LOOK_S: Final = 1.0
_LAST_LOOK_S: Final = 0.1
#: Seconds between two writings of a running run's snapshot, for other terminals.
_WRITE_S: Final = 1.0
#: Seconds that agents have to leave, beyond the grace time of their tasks, before their job is ended.
_LEAVE_S: Final = 10.0
#: Seconds for which a cluster that does not answer is asked again before this process gives up; the run goes on.
_PATIENCE_S: Final = 120.0
_GONE: Final = (AllocationState.ENDED, AllocationState.LOST)


class RunGone(LauncherError):
    """The run's state is not in Consul any more."""


class RemoteHost:
    """One run, from its submission or its adoption to its end."""

    def __init__(self, folder: RunFolder, spec: RunSpec, engine: Engine, options: BaseModel) -> None:
        self.folder = folder
        self.spec = spec
        self.engine: Engine = engine
        assert isinstance(engine, Adopts)
        self._adopts: Adopts = engine
        self._options = options
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()  # a signal handler may put, unlike setting an Event
        self._stop_wish: tuple[bool, str] | None = None
        self._written_at = 0.0
        self._told: set[str] = set()
        self._reasons: dict[str, str] = {}
        self.notes: list[str] = []
        #: Told what is waited for before the submission; standard error unless it is set.
        self.tell: Callable[[str], object] | None = None
        self.snapshot = Snapshot(RunState.first(time.time()), {}, {})

    def start(self) -> None:
        """Submit the run, once Consul answers. Raises YurtError; nothing is left behind then."""
        wait_for(names.state_key(self.spec.run_id), pause=self._pause, tell=self.tell)
        store = self._open()
        try:
            self._index.enter(self.spec, self.engine.name)
            self._runs.create()
            self.folder.write_snapshot(self.snapshot)
            self.folder.write_host(store.address, settings_from_environment().token or "")
            place = Place(
                folder=self.folder.path,
                agent=agent_zip(),
                store=store.address,
                token=settings_from_environment().token or "",
            )
            request: Mapping[str, Any] = self.engine.render(
                self.spec, place, self._options, self.engine.facts(self._options)
            )
            self.notes = list(request.get("notes", ()))
            self._adopts.on_handle = self._announce
            self.engine.submit(request)
            self.notes += self._adopts.notes
            self._begin()
        except BaseException:
            with contextlib.suppress(EngineError):
                self.engine.cancel()
            with contextlib.suppress(StoreError):
                self._index.forget(self.spec.run_id)
            self.folder.forget_remote()
            self.folder.forget_host()
            raise
        with contextlib.suppress(StoreError):
            self._index.forget_old()

    def attach(self) -> None:
        """Take on a run that was submitted by a process that is gone."""
        handle = self.folder.remote()
        assert handle is not None
        self._open(handle["store"])
        self._adopt(handle["engine"])
        if self._store.get(names.state_key(self.spec.run_id)) is None:
            self.engine.cancel()
            raise RunGone(f"its state is not in Consul any more ({self._store.address}): nothing is known of its end")
        if not handle.get("submitted", True) and not any(each.id or each.reason for each in self.engine.describe()):
            self._end(Verdict(BROKEN, "its launcher was killed before it had submitted it"))
        self._begin()

    def let_go(self, *, by: str) -> list[str]:
        """End what can be reached of a run whose cluster does not answer, and forget the rest; what that is.

        Raises YurtError where the cluster answers and refuses, and leaves all as it was.
        """
        handle = self.folder.remote()
        assert handle is not None
        self._adopts.adopt(handle["engine"])
        left = self._end_if_there()
        snapshot = self.folder.snapshot() or self.snapshot
        state = snapshot.state.ended(Verdict(CANCELLED, f"stopped by {by}"), time.time(), 0.0)
        snapshot = replace(snapshot, state=snapshot.state if snapshot.state.verdict else state)
        try:
            self._open(handle["store"])
            stopped = self._runs.change(lambda now: decide.stop(self.spec, now, time.time(), at_once=True, by=by))
            snapshot = replace(snapshot, state=stopped)
            if not left:
                close(self._index, self.spec, self.engine.name, snapshot)
        except StoreError as error:
            if not error.retryable:
                raise
            left.append(f"its agents could not be told: {error}")
        self.folder.write_snapshot(snapshot)
        self.folder.forget_remote()
        return left

    def stop(self, *, at_once: bool, by: str) -> None:
        """Ask for the end of the run; may be called from a signal handler."""
        self._stop_wish = (at_once, by)
        self._wakes.put(None)

    def serve(self, on_look: Callable[[Snapshot], None]) -> Snapshot:
        """Until the run has ended and nothing is left of it; `on_look` is called after every look.

        Raises LauncherError where neither Nomad nor Consul has answered for two minutes: the run goes on without us.
        """
        silent_since: float | None = None
        while True:
            rest(self._wakes, _LAST_LOOK_S if self.snapshot.state.verdict else _LOOK_S)
            try:
                over = self._look()
                silent_since = None
            except (EngineError, StoreError) as error:
                if (verdict := self._without_state()) is not None:
                    self._end_by_hand(verdict)
                    on_look(self.snapshot)
                    return self.snapshot
                silent_since = silent_since or time.monotonic()
                if time.monotonic() - silent_since > _PATIENCE_S:
                    self._give_up()
                    raise LauncherError(
                        f"the cluster of {self.spec.run_id} does not answer, and its run goes on without us: {error}",
                        hint=f"yurt status {self.spec.run_id} looks again",
                    ) from error
                continue
            on_look(self.snapshot)
            if over:
                self._close()
                return self.snapshot

    def logs(self, task: str, offset: int) -> tuple[bytes, int]:
        """From the copy in the run's folder."""
        return read_from(str(self.folder.log(task)), offset)

    # How.

    def _adopt(self, engine: Mapping[str, Any]) -> None:
        """Take the run on where the engine's handle stands: what came of its output after that is read again."""
        for task, cursor in engine["logs"].items():
            log = self.folder.log(task)
            if log.exists():
                with log.open("r+b") as file:
                    file.truncate(cursor["position"])
        self._adopts.adopt(engine)

    def _end_if_there(self) -> list[str]:
        """End what the engine has of the run; what could not be ended as nobody answers. Raises a refusal."""
        try:
            self.engine.cancel()
        except EngineError as error:
            if not error.retryable:
                raise
            return [f"its job could not be ended: {error}"]
        return []

    def _open(self, address: str | None = None) -> Store:
        """The store, once it has answered."""
        store = open_store(address)
        try:
            store.get(names.state_key(self.spec.run_id))
        except StoreError as error:
            raise explained(error) from error
        self._store = store
        self._runs = RunStore(store, self.spec)
        self._index = RunIndex(store)
        return store

    def _pause(self, seconds: float) -> str | None:
        """Wait; who has asked for the end of the run meanwhile."""
        if self._stop_wish is None:
            rest(self._wakes, seconds)
        return self._stop_wish[1] if self._stop_wish else None

    def _begin(self) -> None:
        """Watch, copy, and let others find us."""
        self.folder.write_host(self._store.address, settings_from_environment().token or "")
        self._note()
        self._remember(self._runs.read()[0])
        watch_state(
            self._store, self.spec.run_id, on_state=lambda _: self._wakes.put(None), lost_after_s=None, on_lost=_ignore
        )
        self.engine.describe()
        self._collector = Collector(self.folder, self.engine, [task.name for task in self.spec.tasks], self._note)
        self._collector.catch_up()
        self._collector.start()

    def _announce(self) -> None:
        """The run is about to be submitted: whoever comes after us has to find it."""
        self._index.note_handle(self.spec.run_id, self._adopts.handle())
        self._note(submitted=False)

    def _note(self, *, submitted: bool = True) -> None:
        self.folder.write_remote(
            {"store": self._store.address, "engine": self._adopts.handle(), "submitted": submitted}
        )

    def _look(self) -> bool:
        """One look at everything; True once the run is over."""
        if self._stop_wish is not None:
            at_once, by = self._stop_wish
            self._runs.change(lambda state: decide.stop(self.spec, state, time.time(), at_once=at_once, by=by))
            self._stop_wish = None
        try:
            allocations = self.engine.describe()
        except EngineError as error:
            state = self._runs.advance()  # the run goes on without its engine, as long as nothing is lost
            self._remember(state)
            if state.verdict is not None or not error.retryable:
                raise
            return False
        self._reasons = {each.task: each.reason for each in allocations if each.reason}
        state = self._runs.advance()
        if state.verdict is None:
            state = self._tell(allocations, state)
        if state.verdict is not None and state.verdict.outcome == DEADLINE and state.verdict.hint is None:
            state = self._explain(state)
        self._remember(state)
        if state.verdict is None:
            return False
        return self._left(allocations, state)

    def _left(self, allocations: list[Allocation], state: RunState) -> bool:
        """Whether all agents have left an ended run, or have had the time to."""
        gone = all(each.state in _GONE or not each.id for each in allocations)
        return gone or time.time() > state.since + state.stop_grace_s + _LEAVE_S

    def _tell(self, allocations: list[Allocation], state: RunState) -> RunState:
        """What only the engine knows and the run must."""
        if allocations and all(each.state is AllocationState.ENDED and _stopped(each) for each in allocations):
            by = "the end of its Nomad job (`nomad job stop`?)"
            return self._runs.change(lambda new: decide.stop(self.spec, new, time.time(), at_once=True, by=by))
        for each in allocations:
            if each.state is AllocationState.LOST and each.id not in self._told:
                self._told.add(each.id)
                if lose(self._runs, state.generation, each.task, each.id, each.reason or "its allocation is gone"):
                    state = self._runs.advance()
            elif each.state is AllocationState.ENDED and each.exit_code != 0 and not self._runs.is_done(each.task):
                where = f" on {each.placed_on}" if each.placed_on else ""
                verdict = Verdict(
                    BROKEN,
                    f"{each.task}{where} is gone, and {self.engine.name} does not bring it back: {each.reason}",
                    task=each.task,
                    hint=f"its last lines are in {self.folder.log(each.task)}",
                )
                return self._end(verdict)
        if state.verdict is None and isinstance(self.engine, Reminds):
            lost = [each for each in allocations if each.state is AllocationState.LOST]
            with contextlib.suppress(EngineError):  # at the next look again; else the deadline holds
                self.engine.remind([each for each in lost if not self._runs.is_done(each.task)])
        return state

    def _end(self, verdict: Verdict) -> RunState:
        """The run ends for a fault that is none of the training, unless it has ended meanwhile."""
        now = time.time()
        return self._runs.change(lambda state: None if state.verdict else state.ended(verdict, now, 1.0))

    def _without_state(self) -> Verdict | None:
        """How the run must end where its state cannot: it is gone, or somebody will not wait for the store."""
        by = self._stop_wish[1] if self._stop_wish is not None and self._stop_wish[0] else self.folder.who_lets_go()
        if by is not None:
            return Verdict(CANCELLED, f"stopped by {by}")
        try:
            gone = self._store.get(names.state_key(self.spec.run_id)) is None
        except StoreError:
            return None
        message = f"its state is gone from Consul at {self._store.address}, and its agents cannot agree any more"
        return Verdict(BROKEN, message, hint="was Consul started without its data?") if gone else None

    def _end_by_hand(self, verdict: Verdict) -> None:
        """End the job, without its agents' knowing why."""
        state = self.snapshot.state.ended(verdict, time.time(), 0.0)
        self.snapshot = Snapshot(state, self.snapshot.members, self.snapshot.beats)
        self._close()

    def _explain(self, state: RunState) -> RunState:
        """Say with the verdict why tasks were missing: the engine knows."""
        if not self._reasons:
            return state
        hint = together(self._reasons)

        def explained(new: RunState) -> RunState | None:
            if new.verdict is None or new.verdict.hint is not None:
                return None
            return replace(new, verdict=replace(new.verdict, hint=hint))

        return self._runs.change(explained)

    def _remember(self, state: RunState) -> None:
        now = time.monotonic()
        if state == self.snapshot.state and state.verdict is None and now - self._written_at < _WRITE_S:
            return
        try:
            beats = self._runs.beats()
        except StoreError:
            beats = dict(self.snapshot.beats)
        members = self._runs.members(state.generation)
        found = Snapshot(state, members, beats)
        if state.verdict is not None and not members:  # another process has tidied up
            found = read(self._runs, self._index) or found
        self.snapshot = found
        self.folder.write_snapshot(self.snapshot)
        self._written_at = now

    def _close(self) -> None:
        """The run is over: take the last lines, end what is left of its job, and tidy up in Consul.

        Where the cluster does not answer any more, that is left to the next verb.
        """
        self._collector.finish()
        if self._collector.problem:
            self.notes.append(f"the tasks' output could not be read to its end: {self._collector.problem}")
        self.folder.write_snapshot(self.snapshot)
        with contextlib.suppress(EngineError, StoreError):
            self.engine.cancel()
            close(self._index, self.spec, self.engine.name, self.snapshot)
            self.folder.forget_remote()
        self.folder.forget_host()

    def _give_up(self) -> None:
        self.folder.write_snapshot(self.snapshot)
        self.folder.forget_host()


def _stopped(allocation: Allocation) -> bool:
    return bool(allocation.reason and "job was stopped" in allocation.reason)


def _ignore() -> None:
    pass
