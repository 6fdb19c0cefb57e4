"""Serves one run: holds its store, brings agents to life, marks the lost, moves the state on, sees the end.

On this machine the host is the launcher's process; its death ends the run. All of it happens in the thread that calls
`serve`: watching threads only wake it.
"""

from __future__ import annotations

import queue
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic import BaseModel

from yurt.contract import decide, names
from yurt.contract.spec import RunSpec
from yurt.contract.state import BROKEN, ENDED, EXITED, LOST, Beat, Exit, Member, RunState, Verdict
from yurt.contract.sweep import sweep
from yurt.engines.base import Allocation, AllocationState, Engine, Place
from yurt.errors import EngineError, StoreError
from yurt.kv.client import Store
from yurt.kv.environment import settings_from_environment
from yurt.kv.run_store import RunStore
from yurt.kv.server import EmbeddedStore
from yurt.kv.watching import watch_members, watch_state
from yurt.launcher.agent_zip import agent_zip
from yurt.launcher.files import folders_of_links
from yurt.launcher.publishing import LauncherPublishes
from yurt.launcher.records import RunFolder, Snapshot
from yurt.launcher.waking import rest

#: Seconds between two looks at the engine and at the clock, while nothing wakes the host.
_LOOK_S: Final = 0.25
#: The same once the verdict stands: what is left to see is the end of the agents, and somebody waits for it.
_LAST_LOOK_S: Final = 0.02
#: Seconds between two writings of a running run's snapshot, for other terminals.
_WRITE_S: Final = 1.0
#: Seconds that agents have to leave, beyond the grace time of their tasks, before they are killed.
_LEAVE_S: Final = 5.0


class Host:
    """One run from its submission to its end."""

    def __init__(self, folder: RunFolder, spec: RunSpec, engine: Engine, options: BaseModel) -> None:
        self.folder = folder
        self.spec = spec
        self.engine = engine
        self._options = options
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()  # a signal handler may put, unlike setting an Event
        self._changed = True
        self._server: EmbeddedStore | None = None
        self._request: Mapping[str, Any] = {}
        self._publishes: LauncherPublishes | None = None
        self._stop_wish: tuple[bool, str] | None = None
        self._written_at = 0.0
        self._beats: dict[str, Beat] = {}
        self._joined: set[str] = set()  # allocations that were members of a generation
        self.notes: list[str] = []
        self.snapshot = Snapshot(RunState.first(time.time()), {}, {})

    def start(self) -> None:
        """Open the store and submit the run. Raises YurtError; nothing is left behind then."""
        try:
            self._start(secrets.token_urlsafe(24))
        except BaseException:
            self.close()
            raise

    def _start(self, token: str) -> None:
        self._server = EmbeddedStore(self.engine.prepare(self.spec, self._options), token=token)
        self._server.start()
        address = self._server.address
        self._store = RunStore(Store(address, token), self.spec)
        self._store.create()
        self.folder.write_host(address, token)
        self.folder.write_snapshot(self.snapshot)
        watch_state(self._client(token), self.spec.run_id, on_state=self._on_change, lost_after_s=None, on_lost=_ignore)
        watch_members(self._client(token), self.spec.run_id, self._on_change)
        place = Place(
            folder=self.folder.path,
            agent=agent_zip(),
            store=address,
            token=token,
            linked=folders_of_links(self.folder.files),
        )
        self._request = self.engine.render(self.spec, place, self._options, self.engine.facts(self._options))
        self.notes = list(self._request.get("notes", ()))
        if not self.engine.capabilities.agent_publishes:
            self._publishes = LauncherPublishes(self.folder, self.spec, self._store, lambda: self._wakes.put(None))
        self.engine.submit(self._request)

    def stop(self, *, at_once: bool, by: str) -> None:
        """Ask for the end of the run; may be called from a signal handler."""
        self._stop_wish = (at_once, by)
        self._wakes.put(None)

    def serve(self, on_look: Callable[[Snapshot], None], look_s: float = _LOOK_S) -> Snapshot:
        """Until the run has ended and nothing is left of it; `on_look` is called after every look."""
        try:
            while True:
                rest(self._wakes, _LAST_LOOK_S if self.snapshot.state.verdict else look_s)
                over = self._look()
                on_look(self.snapshot)
                if over:
                    return self.snapshot
        finally:
            self.close()

    def logs(self, task: str, offset: int) -> tuple[bytes, int]:
        """What a task has written from byte `offset` on, and the next offset."""
        return self.engine.logs(task, offset)

    def close(self) -> None:
        """End whatever is left, and the store."""
        if self._publishes:
            self._publishes.stop()
        self.engine.cancel()
        sweep(f"{self.spec.run_id}/", prefix=True)
        self.folder.write_snapshot(self.snapshot)
        self.folder.forget_host()
        if self._server:
            self._server.close()

    def _client(self, token: str) -> Store:
        assert self._server
        return Store(self._server.address, token)

    def _on_change(self, _state: RunState | None = None) -> None:
        self._changed = True
        self._wakes.put(None)

    def _look(self) -> bool:
        """One look at everything; True once the run is over."""
        if self._stop_wish is not None:
            at_once, by = self._stop_wish
            self._stop_wish = None
            self._store.change(lambda state: decide.stop(self.spec, state, time.time(), at_once=at_once, by=by))
            self._changed = True
        state = self.snapshot.state
        if self._changed or self._time_may_matter(state):
            self._changed = False
            state = self._store.advance()
        try:
            allocations = self.engine.describe()
        except EngineError as error:
            state, allocations = self._break(None, f"the run cannot be watched any more: {error}"), []
        if state.verdict is None and not self.engine.capabilities.brings_back:
            for allocation in allocations:
                if allocation.state in (AllocationState.LOST, AllocationState.ENDED):
                    state = self._replace(allocation, state)
        if self._publishes:
            state = self._publishes.look(state, self._config(self.spec.deciding))
        self._remember(state)
        if state.verdict is None:
            return False
        gone = all(each.state in (AllocationState.ENDED, AllocationState.LOST) for each in allocations)
        return gone or time.time() > state.since + state.stop_grace_s + _LEAVE_S

    def _config(self, task: str) -> Mapping[str, Any]:
        """The configuration of a task's agent, as rendered."""
        return next(agent["config"] for agent in self._request["agents"] if agent["task"] == task)

    def _time_may_matter(self, state: RunState) -> bool:
        return state.phase != ENDED

    def _replace(self, allocation: Allocation, state: RunState) -> RunState:
        """An agent is gone before the verdict: end what it left, mark it lost, and start another if the run goes on."""
        task = allocation.task
        if self._store.is_done(task):
            return self._lose_finished(task, state)
        sweep(f"{self.spec.run_id}/{task}")
        now = time.time()
        attempt = state.attempts.get(task, 0)
        if allocation.state is AllocationState.ENDED:
            message = f"the agent of {task} ended by itself with exit code {allocation.exit_code}"
            return self._break(task, f"{message}: {allocation.reason}" if allocation.reason else message)
        member, index = self._store.member(state.generation, task)
        if member is None and allocation.id in self._joined:
            return self._bring_back(task, state)  # lost with an earlier generation, whose end counted already
        if member is None or member.exit is None:
            reason = "out-of-memory" if allocation.out_of_memory else "lost"
            end = Exit(code=137, reason=reason, at=now, attempt=attempt, message=allocation.reason)
            lost = replace(
                member or Member(task, allocation.id, "", LOST, attempt, allocation.placed_on), status=LOST, exit=end
            )
            self._store.put_member(state.generation, lost, cas=index)
        elif member.status != EXITED and member.exit.attempt != attempt:
            return self._store.advance()
        return self._bring_back(task, self._store.advance())

    def _bring_back(self, task: str, state: RunState) -> RunState:
        if state.verdict is None:
            try:
                self.engine.bring_back(task)
            except EngineError as error:
                return self._break(task, f"{task} was lost and could not be started again: {error}")
        return state

    def _break(self, task: str | None, message: str) -> RunState:
        """The run ends for a fault that is none of the training."""
        hint = f"its last lines are in {self.folder.log(task)}" if task else None
        verdict = Verdict(BROKEN, message, task=task, hint=hint)
        now = time.time()
        return self._store.change(lambda new: None if new.verdict else new.ended(verdict, now, 1.0))

    def _lose_finished(self, task: str, state: RunState) -> RunState:
        """Its task had finished, so nothing is run again; but a publisher beside it went with its agent."""
        if self._publishes:
            return state
        member, index = self._store.member(state.generation, task)
        if member is not None and member.status != LOST:
            self._store.put_member(state.generation, replace(member, status=LOST), cas=index)
            return self._store.advance()
        return state

    def _remember(self, state: RunState) -> None:
        members = self._store.members(state.generation)
        self._joined.update(member.allocation for member in members.values())
        now = time.monotonic()
        news = state != self.snapshot.state or members != self.snapshot.members
        if news or now - self._written_at >= _WRITE_S:
            try:
                self._beats = self._store.beats()
            except StoreError:
                pass
            self.snapshot = Snapshot(state, members, self._beats)
            self.folder.write_snapshot(self.snapshot)
            self._written_at = now


def _ignore() -> None:
    pass


def ask_to_stop(folder: RunFolder, *, at_once: bool, by: str) -> bool:
    """Ask the process that serves a run to stop it, through its store; False where nobody serves it any more."""
    served = folder.host()
    if served is None:
        return False
    address, token = served
    tls_params = settings_from_environment().tls_params if address.startswith("https:") else None
    with Store(address, token, tls_params=tls_params) as store:
        spec = folder.spec()
        if store.get(names.state_key(spec.run_id)) is None:
            return False
        RunStore(store, spec).change(lambda state: decide.stop(spec, state, time.time(), at_once=at_once, by=by))
    return True
