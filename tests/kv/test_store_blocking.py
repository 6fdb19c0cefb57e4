"""Blocking queries and watchers: the embedded store and a real Consul alike."""

from __future__ import annotations

import time

import pytest

from tests.kv.store_later import Later
from yurt.kv import Op, Store, StoreClosed

pytestmark = pytest.mark.usefixtures("lives")  # the slow test of the sessions runs meanwhile


def test_a_watch_from_zero_answers_at_once(store, prefix):
    assert store.watch(prefix, 0, 60).entries == ()
    store.put(prefix + "k", b"1")
    index, entries = store.watch(prefix, 0, 60)
    assert entries == (store.get(prefix + "k"),)
    assert index == entries[0].modify_index
    assert store.watch(prefix + "k", 0, 60, recurse=False) == (index, entries)


@pytest.mark.parametrize("recurse", [True, False])
def test_a_watch_waits_its_time_and_returns_the_same(store, prefix, recurse):
    store.put(prefix + "k", b"1")
    first = store.watch(prefix + "k", 0, 60, recurse=recurse)
    start = time.monotonic()
    assert store.watch(prefix + "k", first.index, 0.4, recurse=recurse) == first
    assert 0.39 < time.monotonic() - start < 0.9


CHANGES = {
    "a new key": lambda s, p: s.put(p + "new", b"1"),
    "a new value": lambda s, p: s.put(p + "k", b"2"),
    "new flags": lambda s, p: s.put(p + "k", b"1", flags=1),
    "a delete": lambda s, p: s.delete(p + "other"),
    "the last delete": lambda s, p: s.delete_prefix(p),
    "a transaction": lambda s, p: s.txn([Op("set", p + "new", b"1")]),
    "a lock": lambda s, p: s.acquire(p + "k", b"1", s.session_create(10, name="t")),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_under_the_prefix_wakes(store, prefix, change):
    store.put(prefix + "k", b"1")
    store.put(prefix + "other", b"1")
    first = store.watch(prefix, 0, 60)
    waiting = Later(lambda: store.watch(prefix, first.index, 60))
    CHANGES[change](store, prefix)
    found = waiting.result()
    assert found.index > first.index
    assert found.entries == tuple(store.list(prefix)) != first.entries


def test_what_is_elsewhere_or_the_same_wakes_nobody(store, prefix):
    store.put(prefix + "a/k", b"1")
    first = store.watch(prefix + "a/", 0, 60)
    waiting = Later(lambda: store.watch(prefix + "a/", first.index, 60))
    store.put(prefix + "b/k", b"2")
    store.put(prefix + "a", b"2")
    store.delete(prefix + "b/k")
    store.put(prefix + "a/k", b"1")
    store.put(prefix + "a/k", b"3", cas=1)
    store.delete(prefix + "a/none")
    store.txn([Op("set", prefix + "a/new", b"1"), Op("get", prefix + "a/none")])
    time.sleep(0.2)
    assert waiting.blocked
    store.put(prefix + "a/k", b"2")
    assert [e.value for e in waiting.result().entries] == [b"2"]


@pytest.mark.parametrize("recurse", [True, False])
def test_what_is_missing_wakes_on_every_write(store, prefix, recurse):
    store.put(prefix + "else", b"1")
    first = store.watch(prefix + "none", 0, 60, recurse=recurse)
    waiting = Later(lambda: store.watch(prefix + "none", first.index, 60, recurse=recurse))
    assert waiting.blocked
    store.put(prefix + "else", b"2")
    found = waiting.result()
    assert found.entries == ()
    assert found.index > first.index


def test_a_watch_of_one_key_sees_its_end(store, prefix):
    store.put(prefix + "k", b"1")
    first = store.watch(prefix + "k", 0, 60, recurse=False)
    waiting = Later(lambda: store.watch(prefix + "k", first.index, 60, recurse=False))
    store.put(prefix + "k2", b"1")
    assert waiting.blocked
    store.delete(prefix + "k")
    assert waiting.result().entries == ()


def test_a_watcher_goes_from_change_to_change(store, prefix):
    store.put(prefix + "k", b"0")
    watch = store.watcher(prefix)
    assert [e.value for e in watch.next().entries] == [b"0"]
    for value in (b"1", b"2", b"3"):
        waiting = Later(lambda: watch.next(60))
        store.put(prefix + "k", value)
        assert [e.value for e in waiting.result().entries] == [value]
    assert [e.value for e in watch.next(0.1).entries] == [b"3"]


def test_a_blocked_watcher_can_be_closed(store, prefix):
    store.put(prefix + "k", b"0")
    watch = store.watcher(prefix)
    watch.next()
    waiting = Later(lambda: watch.next(60))
    start = time.monotonic()
    watch.close()
    assert waiting.result() is None
    assert time.monotonic() - start < 0.5
    assert watch.next(60) is None
    assert store.get(prefix + "k") is not None  # the store itself is still open


def test_closing_the_store_ends_every_call(served, prefix):
    store = Store(served.address, served.token)
    store.put(prefix + "k", b"0")
    index, _ = store.watch(prefix, 0, 60)
    watch = store.watcher(prefix)
    watch.next()
    waiting = [Later(lambda: store.watch(prefix, index, 60)), Later(lambda: watch.next(60))]
    store.close()
    assert isinstance(waiting[0].result(), StoreClosed)
    assert waiting[1].result() is None
    with pytest.raises(StoreClosed):
        store.get(prefix + "k")
