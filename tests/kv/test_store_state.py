"""The state machine with a clock that is turned by hand."""

from __future__ import annotations

import threading
import time

import pytest

from yurt.kv import Op, SessionGone, StoreClosed, StoreRejected, StoreTooLarge
from yurt.kv.state import State
from yurt.kv.table import TOMBSTONE_LIMIT, Table


class Clock:
    def __init__(self):
        self.now_s = 1000.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def state(clock):
    numbers = iter(range(1000))
    return State(clock=clock, new_id=lambda: f"session-{next(numbers)}")


def test_a_session_ends_at_twice_its_ttl(state, clock):
    session = state.session_create(10, name="t")
    assert state.next_expiry_s == 1020
    clock.now_s += 19.999
    assert state.session_info(session) is not None
    clock.now_s += 0.001
    assert state.session_info(session) is None
    assert not state.session_renew(session)
    assert state.next_expiry_s is None


def test_a_renewal_counts_from_its_own_time(state, clock):
    session = state.session_create(10, name="t")
    clock.now_s += 15
    assert state.session_renew(session)
    clock.now_s += 19
    state.tick()
    assert state.session_renew(session)
    clock.now_s += 20
    assert state.session_info(session) is None


def test_each_session_ends_in_its_own_time(state, clock):
    sessions = [state.session_create(ttl_s, name="t") for ttl_s in (30, 10, 20)]
    alive = []
    for _ in range(7):
        state.tick()
        alive.append([state.session_info(s) is not None for s in sessions])
        clock.now_s += 10
    assert [sum(row) for row in alive] == [3, 3, 2, 2, 1, 1, 0]
    assert alive[2] == [True, False, True]


def test_a_session_without_ttl_does_not_end(state, clock):
    session = state.session_create(None)
    clock.now_s += 1e9
    assert state.session_info(session) is not None
    assert state.next_expiry_s is None


@pytest.mark.parametrize("behavior", ["release", "delete"])
def test_the_end_frees_the_keys(state, clock, behavior):
    session = state.session_create(10, name="t", behavior=behavior)
    state.acquire("a", b"1", session)
    state.put("b", b"1")
    clock.now_s += 20
    if behavior == "delete":
        assert state.keys("") == ["b"]
    else:
        entry = state.get("a")
        assert (entry.value, entry.session, entry.lock_index) == (b"1", None, 1)
        assert entry.modify_index > entry.create_index


@pytest.mark.parametrize(("delay_s", "kept_out_s"), [(0, 0), (15, 15), (100, 60)])
def test_the_lock_delay(state, clock, delay_s, kept_out_s):
    first = state.session_create(10, name="t", lock_delay_s=delay_s, behavior="delete")
    second = state.session_create(3600, name="t")
    state.acquire("a", b"1", first)
    clock.now_s += 20
    state.tick()
    if kept_out_s:
        assert not state.acquire("a", b"2", second)
        assert state.put("a", b"3", cas=0)
        clock.now_s += kept_out_s - 0.001
        assert not state.acquire("a", b"2", second)
        assert not state.txn([Op("lock", "a", b"2", session=second)]).ok
        clock.now_s += 0.001
    assert state.acquire("a", b"2", second)


def test_limits(state):
    for ttl_s in (9.9, 86_401):
        with pytest.raises(StoreRejected):
            state.session_create(ttl_s, name="t")
    with pytest.raises(StoreTooLarge):
        state.put("a", b"v" * 524_289)
    with pytest.raises(StoreTooLarge):
        state.txn([Op("get", "a")] * 65)
    with pytest.raises(SessionGone):
        state.acquire("a", b"1", "nobody")
    assert State(min_ttl_s=0.5).session_create(0.5, name="t")


def test_a_failed_transaction_leaves_no_trace(state):
    state.put("a", b"1")
    state.put("gone", b"1")
    state.delete("gone")
    woken = []
    before = state.read("", recurse=True)
    state.subscribe("", before.index, lambda: woken.append(1), recurse=True)
    ops = [Op("set", "a", b"2"), Op("delete", "a"), Op("set", "gone", b"2"), Op("set", "new", b"2"), Op("get", "no")]
    assert not state.txn(ops).ok
    assert state.read("", recurse=True) == before
    assert state.read("none", recurse=True).index == before.index
    assert woken == []


def test_a_subscription_is_woken_once_by_what_concerns_it(state):
    state.put("a/1", b"1")
    state.put("b", b"1")
    woken = []
    for name, key, recurse in [("prefix", "a/", True), ("key", "b", False), ("none", "zz", False), ("all", "", True)]:
        index = state.read(key, recurse=recurse).index
        assert state.subscribe(key, index, lambda name=name: woken.append(name), recurse=recurse)
    state.put("a/2", b"1")
    assert sorted(woken) == ["all", "none", "prefix"]
    state.put("b", b"2")
    state.put("a/2", b"2")
    assert sorted(woken) == ["all", "key", "none", "prefix"]


def test_a_subscription_to_the_past_is_refused(state):
    state.put("a", b"1")
    assert state.subscribe("a", 1, lambda: None, recurse=False) is None


def test_a_forgotten_subscription_is_not_woken(state):
    state.put("a", b"1")
    woken = []
    waiter = state.subscribe("a", state.get("a").modify_index, lambda: woken.append(1), recurse=False)
    state.unsubscribe(waiter)
    state.put("a", b"2")
    assert woken == []


def test_a_session_that_ends_sooner_wakes_those_who_sleep_until_the_next_end(state):
    nearer = []
    state.on_nearer_expiry = lambda: nearer.append(state._sessions.next_end_s)
    for ttl_s in (20, 30, 10, 15):
        state.session_create(ttl_s, name="t")
    assert nearer == [1040, 1020]


def test_waiting_in_the_process_sees_a_session_end_without_anybody_else():
    state = State(min_ttl_s=0.01)
    session = state.session_create(0.1, name="t", behavior="delete")
    state.acquire("a/1", b"1", session)
    index, _ = state.watch("a/", 0, 60)
    start = time.monotonic()
    assert state.watch("a/", index, 60).entries == ()
    assert 0.15 < time.monotonic() - start < 1


def test_waiting_in_the_process():
    state = State()
    state.put("a/1", b"1")
    first = state.watch("a/", 0, 60)
    assert state.watch("a/", first.index, 0.05) == first
    threading.Timer(0.05, state.put, ("a/2", b"1")).start()
    assert len(state.watch("a/", first.index, 60).entries) == 2
    assert state.watch("a/", 10**6, 0.05).index == 0  # the store went backwards: begin anew


def test_a_watcher_in_the_process_can_be_closed():
    state = State()
    state.put("a", b"1")
    watch = state.watcher("a")
    assert len(watch.next().entries) == 1
    threading.Timer(0.05, watch.close).start()
    assert watch.next(60) is None
    assert watch.next(60) is None


def test_closing_wakes_everybody_and_leaves_the_rest_readable():
    state = State()
    state.put("a", b"1")
    index = state.get("a").modify_index
    threading.Timer(0.05, state.close).start()
    with pytest.raises(StoreClosed):
        state.watch("a", index, 60, recurse=False)
    with pytest.raises(StoreClosed):
        state.watch("a", 0, 60, recurse=False)
    assert state.get("a").value == b"1"


def test_deletions_are_remembered_but_not_for_ever():
    table = Table()
    table.set("a/keep", b"", 0, 1)
    for n in range(3 * TOMBSTONE_LIMIT):
        table.set(f"a/{n}", b"", 0, 2 * n + 2)
        table.delete(f"a/{n}", 2 * n + 3)
    assert len(table._tombstones) <= TOMBSTONE_LIMIT
    assert table.index_of("a/", recurse=True) == (6 * TOMBSTONE_LIMIT + 1, True)


def test_many_threads_lose_no_update():
    state = State()
    state.put("n", b"0")

    def count():
        for _ in range(50):
            while True:
                entry = state.get("n")
                if state.put("n", b"%d" % (int(entry.value) + 1), cas=entry.modify_index):
                    break

    threads = [threading.Thread(target=count) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert state.get("n").value == b"400"
