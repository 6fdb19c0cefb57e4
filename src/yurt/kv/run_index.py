"""All runs of a store that outlives their launchers, for machines that know nothing of them.

One small value a run (``yurt/index/<run>``) lists them by one request; what changes while a run lives is read for 21
runs at a time. docs/store.md has the whole layout of keys.
"""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from yurt.contract import names
from yurt.contract.packed import head, pack_spec, packed, unpack_spec, unpacked
from yurt.contract.spec import RunSpec
from yurt.contract.state import Beat, RunState
from yurt.errors import RunNotFound, StoreError
from yurt.kv.client import Store
from yurt.kv.errors import StoreTooLarge
from yurt.kv.values import TXN_LIMIT_OPS, Op

#: Seconds for which an ended run stays in the list; the next submission to the same store removes it then.
KEPT_S: Final = 30 * 86400.0
#: State, done marks and the deciding task's beat of a run are three operations of a transaction.
_AT_ONCE: Final = TXN_LIMIT_OPS // 3


@dataclass(frozen=True, slots=True)
class Entry:
    """One run of the list.

    `spec` has no tasks; `tasks` is their number, `done` how many of them have exited 0. `state` is without the cluster
    and the attempts; None means that the run has left no state. `progress` is the deciding task's last. `closed` says
    that the run is over and somebody has tidied up after it.
    """

    spec: RunSpec
    engine: str
    tasks: int
    deciding: str
    state: RunState | None = None
    done: int = 0
    progress: Mapping[str, Any] = field(default_factory=dict)
    closed: bool = False

    @property
    def run_id(self) -> str:
        """The run."""
        return self.spec.run_id

    @property
    def ended_at(self) -> float | None:
        """Unix time in seconds of its verdict; None while it has none."""
        return self.state.since if self.state and self.state.verdict else None

    def dumps(self) -> bytes:
        """As stored."""
        value = {
            "spec": head(self.spec),
            "engine": self.engine,
            "tasks": self.tasks,
            "deciding": self.deciding,
            "state": asdict(self.state) if self.state else None,
            "done": self.done,
            "progress": dict(self.progress),
            "closed": self.closed,
        }
        return packed(value)

    @classmethod
    def loads(cls, data: bytes) -> Entry:
        """Back from the store. Raises ValueError, KeyError or TypeError for anything else."""
        value = unpacked(data)
        state = RunState.loads(json.dumps(value["state"]).encode()) if value["state"] else None
        return cls(**{**value, "spec": RunSpec.from_json(value["spec"]), "state": state})


class RunIndex:
    """Reads and writes the list. Every method raises StoreError where the store cannot be spoken to."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def enter(self, spec: RunSpec, engine: str) -> None:
        """A run is about to be submitted: its specification, and its place in the list."""
        self._store.put(names.spec_key(spec.run_id), pack_spec(spec))
        self._put(Entry(spec, engine, len(spec.tasks), spec.deciding))

    def note_handle(self, run_id: str, handle: Mapping[str, Any]) -> None:
        """How the engine finds the submitted run again."""
        self._store.put(names.engine_key(run_id), packed(handle))

    def entries(self) -> list[Entry]:
        """All runs as they were entered or closed, the newest first. One request.

        Raises StoreDenied where the token may not read them: Consul's own list would be empty (1.8.7).
        """
        listed = self._store.list(names.INDEX_PREFIX)
        if not listed:
            self._store.get(names.INDEX_PREFIX)
        found = []
        for each in listed:
            try:
                found.append(Entry.loads(each.value))
            except (ValueError, KeyError, TypeError):
                continue  # of another version of Yurt, or of somebody else
        return sorted(found, key=lambda entry: entry.spec.submitted_at, reverse=True)

    def runs(self) -> list[Entry]:
        """All runs as they are now, the newest first. One request, and one for each 21 runs that are not closed."""
        entries = self.entries()
        live = [entry for entry in entries if not entry.closed]
        now = {}
        for start in range(0, len(live), _AT_ONCE):
            now.update(self._live(live[start : start + _AT_ONCE]))
        return [now.get(entry.run_id, entry) for entry in entries]

    def find(self, name: str | None, engine: str) -> Entry:
        """The run of this engine with this id, or the only one whose id begins so; None is the newest.

        It is as it was entered or closed. Raises RunNotFound.
        """
        known = [entry for entry in self.entries() if entry.engine == engine]
        hint = f"`yurt ls --on {engine}` shows the runs there are"
        if name is None:
            if not known:
                raise RunNotFound(f"{self._store.address} knows of no runs on {engine}", hint="see CONSUL_HTTP_ADDR")
            return known[0]
        matching = [entry for entry in known if entry.run_id == name]
        matching = matching or [entry for entry in known if entry.run_id.startswith(name)]
        if len(matching) > 1:
            few = ", ".join(entry.run_id for entry in matching[:4])
            raise RunNotFound(f"{name!r} could be several runs: {few}", hint="write more of the id")
        if not matching:
            raise RunNotFound(f"{self._store.address} knows of no run {name!r} on {engine}", hint=hint)
        return matching[0]

    def spec(self, run_id: str) -> RunSpec:
        """The run as submitted, secrets left out. Raises RunNotFound."""
        found = self._store.get(names.spec_key(run_id))
        try:
            return unpack_spec(found.value if found else b"")
        except (ValueError, KeyError, TypeError) as error:
            raise RunNotFound(f"the specification of {run_id} is not at {self._store.address}") from error

    def handle(self, run_id: str) -> dict[str, Any] | None:
        """What `note_handle` wrote."""
        found = self._store.get(names.engine_key(run_id))
        value: dict[str, Any] | None = unpacked(found.value) if found else None
        return value

    def end(self, run_id: str) -> dict[str, Any] | None:
        """What `close` wrote."""
        found = self._store.get(names.end_key(run_id))
        value: dict[str, Any] | None = unpacked(found.value) if found else None
        return value

    def close(self, spec: RunSpec, engine: str, state: RunState, progress: Mapping[str, Any], end: Any) -> None:
        """The run is over: keep what others want to know of it, and remove what only its agents needed.

        `end` is what was last seen of its tasks, as JSON values. Closing it again changes nothing.
        """
        found = self._store.get(names.index_key(spec.run_id))
        if found is None or not Entry.loads(found.value).closed:
            done = len(self._store.keys(names.done_prefix(spec.run_id)))
            try:
                self._store.put(names.end_key(spec.run_id), packed(end))
            except StoreTooLarge:
                pass  # the verdict stands in the state
            self._put(Entry(spec, engine, len(spec.tasks), spec.deciding, _slim(state), done, progress, closed=True))
        prefix = names.run_prefix(spec.run_id)
        for part in (f"{prefix}members/", names.beats_prefix(spec.run_id), names.done_prefix(spec.run_id)):
            self._store.delete_prefix(part)

    def correct(self, run_id: str, state: RunState, end: Any) -> None:
        """An ended run's state is another after all; nothing where it is not listed as closed. `end` as in `close`."""
        found = self._store.get(names.index_key(run_id))
        if found is None or not (entry := Entry.loads(found.value)).closed:
            return
        with contextlib.suppress(StoreTooLarge):
            self._store.put(names.end_key(run_id), packed(end))
        self._put(replace(entry, state=_slim(state)))

    def forget(self, run_id: str) -> None:
        """Remove all that is kept of a run; its place in the list last."""
        self._store.delete_prefix(names.run_prefix(run_id))
        self._store.delete(names.index_key(run_id))

    def forget_old(self) -> None:
        """Remove the runs that were closed more than `KEPT_S` ago."""
        before = time.time() - KEPT_S
        for entry in self.entries():
            if entry.closed and (entry.ended_at or before) < before:
                self.forget(entry.run_id)

    def _put(self, entry: Entry) -> None:
        self._store.put(names.index_key(entry.run_id), entry.dumps())

    def _live(self, entries: list[Entry]) -> dict[str, Entry]:
        """The runs as they are now. A get-tree of what is not there is no error, unlike a get (Consul 1.8.7)."""
        ops = [Op("get-tree", key) for entry in entries for key in _live_keys(entry)]
        answer = self._store.txn(ops)
        if not answer.ok:
            raise StoreError(f"the key-value store could not be read: {answer.errors[0].what}")
        values = {each.key: each.value for each in answer.entries}
        return {entry.run_id: _now(entry, values) for entry in entries}


def _live_keys(entry: Entry) -> Iterator[str]:
    yield names.state_key(entry.run_id)
    yield names.done_prefix(entry.run_id)
    yield names.beat_key(entry.run_id, entry.deciding)


def _now(entry: Entry, values: Mapping[str, bytes]) -> Entry:
    state = values.get(names.state_key(entry.run_id))
    beat = values.get(names.beat_key(entry.run_id, entry.deciding))
    return replace(
        entry,
        state=_slim(RunState.loads(state)) if state else None,
        done=sum(key.startswith(names.done_prefix(entry.run_id)) for key in values),
        progress=Beat.loads(beat).progress if beat else {},
    )


def _slim(state: RunState) -> RunState:
    """Without what grows with the number of tasks."""
    return replace(state, cluster=None, attempts={})
