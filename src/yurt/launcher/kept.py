"""A run as it stands in a store that outlives its launcher: while it lives, and what is kept of it afterwards."""

from __future__ import annotations

from dataclasses import replace

from yurt.contract import names
from yurt.contract.spec import RunSpec
from yurt.contract.state import Member, RunState
from yurt.errors import RunNotFound
from yurt.kv.run_index import Entry, RunIndex
from yurt.kv.run_store import RunStore
from yurt.launcher.records import Snapshot


def read(runs: RunStore, index: RunIndex) -> Snapshot | None:
    """The run as it stands in Consul; its members from what was kept of them once they are removed.

    None before its first state. Raises RunNotFound where nothing is left.
    """
    run_id = runs.spec.run_id
    found = runs.store.get(names.state_key(run_id))
    if found is None:
        listed = runs.store.get(names.index_key(run_id))
        if listed is None:
            raise RunNotFound(f"{run_id} was removed from {runs.store.address}")
        last = Entry.loads(listed.value).state
        return Snapshot(last, {}, {}) if last else None
    state = RunState.loads(found.value)
    members = runs.members(state.generation)
    if state.verdict is not None and not members and (end := index.end(run_id)) is not None:
        return replace(Snapshot.from_json(end), state=state)
    return Snapshot(state, members, runs.beats())


def close(index: RunIndex, spec: RunSpec, engine: str, snapshot: Snapshot) -> None:
    """Keep in Consul what others want to know of an ended run, and remove the rest. Raises StoreError."""
    beat = snapshot.beats.get(spec.deciding)
    index.close(spec, engine, snapshot.state, beat.progress if beat else {}, _end(spec, snapshot).to_json())


def correct(runs: RunStore, index: RunIndex, snapshot: Snapshot) -> None:
    """Let others see that an ended run's end is another after all: its model was published. Raises StoreError."""
    if runs.store.get(names.state_key(runs.spec.run_id)) is None:
        return  # it was removed
    last = snapshot.state
    runs.change(lambda now: replace(now, verdict=last.verdict, published=last.published) if now.verdict else None)
    index.correct(runs.spec.run_id, last, _end(runs.spec, snapshot).to_json())


def _end(spec: RunSpec, snapshot: Snapshot) -> Snapshot:
    """What is kept of it."""
    beat = snapshot.beats.get(spec.deciding)
    members = {task: _short(member) for task, member in snapshot.members.items()}
    bare = replace(snapshot.state, cluster=None, attempts={})
    return Snapshot(bare, members, {spec.deciding: beat} if beat else {})


def _short(member: Member) -> Member:
    """Without its last lines (those that matter stand with the verdict) and its allocation, which is of use no more."""
    end = replace(member.exit, last_lines=()) if member.exit else None
    return replace(member, allocation="", unreachable=(), exit=end)
