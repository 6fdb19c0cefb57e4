"""The list of all runs in a store: the embedded one and a real Consul alike."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from tests.contract.test_values import SPEC
from yurt.contract import names
from yurt.contract.spec import TaskSpec
from yurt.contract.state import JOINED, RUNNING, SUCCEEDED, Beat, Member, RunState, Verdict
from yurt.errors import RunNotFound
from yurt.kv.run_index import KEPT_S, RunIndex
from yurt.kv.run_store import RunStore

pytestmark = pytest.mark.usefixtures("lives")


class Counting:
    """A store that counts what it is asked."""

    def __init__(self, store):
        self._store = store
        self.asked = 0

    def __getattr__(self, name):
        found = getattr(self._store, name)
        if callable(found):
            self.asked += 1
        return found


@pytest.fixture
def engine():
    """A name of its own: other tests leave runs in the same store."""
    return f"e-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def submit(store, engine):
    """Enters runs, and removes them afterwards."""
    entered = []
    index = RunIndex(store)

    def enter(submitted_at=100.0, tasks=3):
        spec = replace(
            SPEC,
            run_id=f"r-{uuid.uuid4().hex[:10]}",
            submitted_at=submitted_at,
            tasks=tuple(TaskSpec("worker", number, ("a",), {"API_KEY": "hush"}) for number in range(tasks)),
        )
        entered.append(spec.run_id)
        index.enter(spec, engine)
        RunStore(store, spec).create()
        return spec

    yield enter
    for run_id in entered:
        index.forget(run_id)
    assert not any(store.keys(names.run_prefix(run_id)) for run_id in entered)


def end(store, spec, engine, at=1000.0):
    state = RunState.first(900.0).ended(Verdict(SUCCEEDED, "succeeded"), at, 0.0)
    runs = RunStore(store, spec)
    assert runs.swap(state, runs.read()[1])
    RunIndex(store).close(spec, engine, state, {"loss": 0.5}, {"any": "thing"})
    return state


def test_what_is_entered_is_found_and_shows_how_far_it_is(store, engine, submit):
    spec = submit()
    runs, index = RunStore(store, spec), RunIndex(store)
    state, at = runs.read()
    runs.swap(replace(state, phase=RUNNING, cluster={"worker": ["a:1"]}, attempts={"worker/0": 1}), at)
    runs.put_beat("worker/0", Beat(1.0, {"epoch": 2}))
    runs.put_beat("worker/1", Beat(1.0, {"epoch": 3}))
    runs.mark_done("worker/1", 0, 0)
    [entry] = [each for each in index.runs() if each.engine == engine]
    assert (entry.run_id, entry.tasks, entry.done, entry.progress) == (spec.run_id, 3, 1, {"epoch": 2})
    assert (entry.state.phase, entry.state.cluster, entry.ended_at, entry.closed) == (RUNNING, None, None, False)
    assert index.find(spec.run_id[:8], engine).run_id == spec.run_id
    assert index.find(None, engine).run_id == spec.run_id
    assert index.spec(spec.run_id).task("worker/2").env == {"API_KEY": "<hidden>"}
    assert not any(b"hush" in each.value for each in store.list(names.run_prefix(spec.run_id)))


def test_a_closed_run_keeps_what_is_small_and_only_once(store, engine, submit):
    spec = submit()
    runs, index = RunStore(store, spec), RunIndex(store)
    runs.put_member(0, Member("worker/0", "a", "h:1", JOINED))
    runs.put_beat("worker/0", Beat(1.0))
    for task in spec.tasks:
        runs.mark_done(task.name, 0, 0)
    index.note_handle(spec.run_id, {"job": "x"})
    state = end(store, spec, engine)
    prefix = names.run_prefix(spec.run_id)
    assert store.keys(prefix) == [prefix + name for name in ("end", "engine", "spec", "state")]
    [entry] = [each for each in index.runs() if each.engine == engine]
    assert (entry.closed, entry.done, entry.ended_at, entry.progress) == (True, 3, 1000.0, {"loss": 0.5})
    index.close(spec, engine, state, {}, {})  # by a second process, which has seen less
    assert index.end(spec.run_id) == {"any": "thing"}
    assert index.handle(spec.run_id) == {"job": "x"}
    assert index.find(None, engine).done == 3


def test_the_list_costs_one_request_and_one_for_many_runs_that_live(store, engine, submit):
    for number in range(25):
        spec = submit(submitted_at=float(number))
        if number < 3:
            end(store, spec, engine)
    counting = Counting(store)
    runs = [each for each in RunIndex(counting).runs() if each.engine == engine]
    assert len(runs) == 25
    assert [each.spec.submitted_at for each in runs] == sorted((float(n) for n in range(25)), reverse=True)
    assert all(each.state is not None for each in runs)
    others = sum(1 for each in RunIndex(store).entries() if each.engine != engine and not each.closed)
    assert counting.asked <= 3 + others // 21 + 1


def test_a_beginning_that_fits_several_and_a_name_of_none_are_said(store, engine, submit):
    index = RunIndex(store)
    with pytest.raises(RunNotFound, match="knows of no runs on"):
        index.find(None, engine)
    submit(), submit()
    with pytest.raises(RunNotFound, match="could be several runs"):
        index.find("r-", engine)
    with pytest.raises(RunNotFound, match="knows of no run 'nope'"):
        index.find("nope", engine)
    with pytest.raises(RunNotFound, match="knows of no run"):
        index.find("r-", "another")


def test_old_runs_that_are_closed_are_forgotten_and_others_stay(store, engine, submit, monkeypatch):
    old, young, lives = submit(), submit(), submit()
    monkeypatch.setattr("yurt.kv.run_index.time.time", lambda: 5000.0 + KEPT_S)
    end(store, old, engine, at=4999.0)
    end(store, young, engine, at=5001.0)
    RunIndex(store).forget_old()
    left = {each.run_id for each in RunIndex(store).entries() if each.engine == engine}
    assert left == {young.run_id, lives.run_id}
    assert store.keys(names.run_prefix(old.run_id)) == []


def test_what_another_version_wrote_is_passed_over(store, engine, submit):
    spec = submit()
    key = names.index_key("r-foreign")
    store.put(key, b'{"of": "another version"}')
    try:
        assert [each.run_id for each in RunIndex(store).entries() if each.engine == engine] == [spec.run_id]
    finally:
        store.delete(key)
