"""A run that another machine submitted to a cluster: looked at, followed and stopped by what is in Consul and Nomad.

Nothing of it is remembered here. A run that this machine has a record of is taken from there: its copy has more.
"""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from yurt.contract import decide, names
from yurt.engines import registry
from yurt.engines.base import Adopts, AllocationState, Engine, StoreAt
from yurt.errors import EngineError, LauncherError, StoreError, UsageError
from yurt.kv.client import Store
from yurt.kv.environment import settings_from_environment
from yurt.kv.run_index import Entry, RunIndex
from yurt.kv.run_store import RunStore
from yurt.launcher import attaching, taking_over
from yurt.launcher.collecting import Collector
from yurt.launcher.consul import explained, open_store
from yurt.launcher.kept import close, read
from yurt.launcher.records import RunFolder, Snapshot, all_runs

#: Seconds between two reads of a run's state, however often it is asked for.
_LOOK_S: Final = 0.5
#: Seconds that agents have to leave, beyond the grace time of their tasks, before their job is ended.
_LEAVE_S: Final = 10.0
#: Seconds for which nobody touches a run that has no state yet, or whose agents may still be leaving.
_LEFT_ALONE_S: Final = 60.0
_GONE: Final = (AllocationState.ENDED, AllocationState.LOST)


class Elsewhere(RunFolder):
    """The run as verbs know runs: a folder, here an empty one that is gone with `leave`."""

    lasting: ClassVar[bool] = False

    def __init__(self, store: Store, entry: Entry) -> None:
        self._own = tempfile.TemporaryDirectory(prefix="yurt-look-")
        super().__init__(Path(self._own.name) / entry.run_id)
        self.path.mkdir()
        self._store = store
        self._index = RunIndex(store)
        self._spec = self._index.spec(entry.run_id)
        self._runs = RunStore(store, self._spec)
        self._engine_name = entry.engine
        self._engine: Engine | None = None
        self._collector: Collector | None = None
        self._seen: Snapshot | None = None
        self._seen_at = -_LOOK_S

    def leave(self) -> None:
        """Forget it; never raises."""
        self._store.close()
        self._own.cleanup()

    def record(self) -> dict[str, Any]:
        """As of a run of this machine."""
        return {"spec": self._spec.to_json(), "engine": self._engine_name, "job_file": None}

    def handle(self) -> dict[str, Any] | None:
        """As of a run of this machine."""
        return self._index.handle(self.run_id)

    def remote(self) -> None:
        """Nobody is set beside it: it is only looked at."""

    def snapshot(self) -> Snapshot | None:
        """As it is now, to half a second; None before its first state. Raises RunNotFound once it is removed."""
        if time.monotonic() - self._seen_at >= _LOOK_S:
            if self._collector is not None and self._engine is not None:
                with contextlib.suppress(EngineError):
                    self._engine.describe()  # there may be new allocations to read from
            self._seen = read(self._runs, self._index)
            self._seen_at = time.monotonic()
        return self._seen

    def host(self) -> tuple[str, str] | None:
        """Its store, until it is over and what it printed has been read."""
        snapshot = self.snapshot()
        if snapshot is not None and snapshot.state.verdict is not None:
            if self._collector is not None:
                self._wait_for_allocations(snapshot)
                self._collector.finish()
            return None
        return self._store.address, settings_from_environment().token or ""

    def open_logs(self) -> str | None:
        """Copy the tasks' output into the folder, now and from now on; what is wrong with it, if anything."""
        engine = self._found()
        allocations = engine.describe()
        tasks = [task.name for task in self._spec.tasks]
        self._collector = Collector(self, engine, tasks, _ignore)
        self._collector.catch_up()
        self._collector.start()
        if not any(each.id for each in allocations) and self._index_closed():
            return f"{engine.name} keeps nothing of {self.run_id} any more: its output is where it was submitted"
        return self._collector.problem

    def ask_to_stop(self, *, at_once: bool, by: str) -> bool:
        """Ask the run's agents to stop it; False where it is over."""
        snapshot = self.snapshot()
        if snapshot is not None and snapshot.state.verdict is None:
            self._runs.change(lambda state: decide.stop(self._spec, state, time.time(), at_once=at_once, by=by))
            self._seen_at = -_LOOK_S
            return True
        return False

    def tidy(self, *, let_go: bool = False) -> list[str]:
        """End what is left of a run that is over, in case nobody else does; what could not be ended.

        Raises LauncherError where something could not, unless it is to be let go.
        """
        snapshot = self.snapshot()
        if snapshot is None or snapshot.state.verdict is None or self._index_closed():
            return []
        left = []
        if (handle := self._index.handle(self.run_id)) is not None:
            try:
                self._found(handle)
                self._wait_for_allocations(snapshot)
                self._found(handle).cancel()
            except EngineError as error:
                if not let_go or not error.retryable:
                    raise
                left.append(f"its job could not be ended: {error}")
            snapshot = read(self._runs, self._index) or snapshot  # with the last words of its agents
        close(self._index, self._spec, self._engine_name, snapshot)
        return left

    def _index_closed(self) -> bool:
        found = self._store.get(names.index_key(self.run_id))
        return found is not None and Entry.loads(found.value).closed

    def _found(self, handle: Mapping[str, Any] | None = None) -> Engine:
        if self._engine is None:
            handle = handle or self._index.handle(self.run_id)
            if handle is None:
                raise LauncherError(f"{self.run_id} was never submitted to its engine, or is being submitted now")
            engine = registry.load(self._engine_name)()
            assert isinstance(engine, Adopts)
            engine.adopt(handle)
            self._engine = engine
        return self._engine

    def _wait_for_allocations(self, snapshot: Snapshot) -> None:
        """Until the agents have left, or have had the time to."""
        end = snapshot.state.since + snapshot.state.stop_grace_s + _LEAVE_S
        assert self._engine
        with contextlib.suppress(EngineError):
            while time.time() < end:
                if all(each.state in _GONE or not each.id for each in self._engine.describe()):
                    return
                time.sleep(_LOOK_S)


def find(name: str | None, engine: str, *, otherwise: Callable[[str], object] | None = None) -> RunFolder:
    """A run of this engine by its id or the beginning of one, wherever it was submitted; None is the newest.

    Raises RunNotFound, UsageError for an engine that has no such runs, StoreError.
    """
    if registry.load(engine).capabilities.store is StoreAt.AGENT:
        return taking_over.find(name, engine, otherwise=otherwise)
    store = store_of(engine)
    try:
        entry = RunIndex(store).find(name, engine)
        here = next((folder for folder in all_runs() if folder.run_id == entry.run_id), None)
        if here is not None and (entry.closed or here.remote() is not None or here.host() is not None):
            return attaching.find(entry.run_id, otherwise=otherwise)
        return Elsewhere(store, entry)  # also one that this machine has let go
    except StoreError as error:
        raise explained(error) from error


def store_of(engine: str) -> Store:
    """The store of an engine whose runs can be seen from any machine. Raises UsageError for another."""
    if registry.load(engine).capabilities.store is not StoreAt.CONSUL:
        raise UsageError(
            f"--on {engine}: its runs are those of this machine", hint="leave --on out; with nomad it asks Consul"
        )
    return open_store()


def runs_on(engine: str) -> list[Entry]:
    """All runs of the engine as they are now, the newest first. Raises UsageError, StoreError, EngineError."""
    if registry.load(engine).capabilities.store is StoreAt.AGENT:
        return taking_over.runs_on(engine)
    with store_of(engine) as store:
        try:
            return [entry for entry in RunIndex(store).runs() if entry.engine == engine]
        except StoreError as error:
            raise explained(error) from error


def forget_ended(engine: str, before: float, *, dry_run: bool) -> list[str]:
    """Remove from Consul what is kept of runs that ended before this Unix time; their ids.

    A run that was entered and has left no state, as its launcher died, counts as ended when it was submitted. One that
    nobody has tidied up after is removed with all of its keys. Raises UsageError, StoreError.
    """
    if registry.load(engine).capabilities.store is StoreAt.AGENT:
        return taking_over.forget_ended(engine, before, dry_run=dry_run)
    gone = []
    for entry in runs_on(engine):
        ended_at = entry.ended_at if entry.state else entry.spec.submitted_at
        latest = before if entry.closed else min(before, time.time() - _LEFT_ALONE_S)
        if ended_at is not None and ended_at <= latest:
            gone.append(entry.run_id)
    if gone and not dry_run:
        with store_of(engine) as store:
            for run_id in gone:
                RunIndex(store).forget(run_id)
    return gone


def _ignore() -> None:
    pass
