"""Sessions and locks: the embedded store and a real Consul alike."""

from __future__ import annotations

import time

import pytest

from tests.kv.store_later import Later
from yurt.kv import Op, SessionGone, StoreRejected

GONE = "11111111-1111-1111-1111-111111111111"


def test_the_life_of_a_session(store):
    session = store.session_create(15, name="worker/2", behavior="delete", lock_delay_s=2.5)
    info = store.session_info(session)
    assert (info.id, info.name, info.behavior, info.ttl_s, info.lock_delay_s) == (
        session,
        "worker/2",
        "delete",
        15,
        2.5,
    )
    assert store.session_renew(session)
    store.session_destroy(session)
    assert store.session_info(session) is None
    assert not store.session_renew(session)
    store.session_destroy(session)  # again is no error


@pytest.mark.parametrize("ttl_s", [0.5, 9.999, 86_401])
def test_a_ttl_out_of_bounds_is_rejected(store, ttl_s):
    with pytest.raises(StoreRejected, match="Invalid Session TTL"):
        store.session_create(ttl_s, name="t")


def test_one_session_holds_a_lock(store, prefix):
    key = prefix + "lock"
    one, two = (store.session_create(10, name=n) for n in ("one", "two"))
    assert store.acquire(key, b"one", one)
    first = store.get(key)
    assert (first.value, first.session, first.lock_index) == (b"one", one, 1)
    assert not store.acquire(key, b"two", two)
    assert not store.release(key, b"two", two)
    assert store.acquire(key, b"again", one)
    assert store.get(key).lock_index == 1
    assert store.put(key, b"anybody")  # a lock is advisory
    assert (store.get(key).value, store.get(key).session) == (b"anybody", one)
    assert store.release(key, b"free", one)
    free = store.get(key)
    assert (free.value, free.session) == (b"free", None)
    assert store.acquire(key, b"two", two)
    assert store.get(key).value == b"two"
    store.session_destroy(two)


def test_a_dead_session_locks_nothing(store, prefix):
    with pytest.raises(SessionGone):
        store.acquire(prefix + "k", b"1", GONE)
    assert not store.release(prefix + "k", b"1", GONE)
    result = store.txn([Op("lock", prefix + "k", b"1", session=GONE)])
    assert not result.ok
    assert "invalid session" in result.errors[0].what


@pytest.mark.parametrize("behavior", ["release", "delete"])
def test_the_end_of_a_session_frees_its_keys_and_wakes(store, prefix, behavior):
    session = store.session_create(10, name="t", behavior=behavior)
    for name in ("a", "b"):
        assert store.acquire(prefix + name, b"held", session)
    store.put(prefix + "c", b"free")
    first = store.watch(prefix, 0, 60)
    waiting = Later(lambda: store.watch(prefix, first.index, 60))
    store.session_destroy(session)
    left = waiting.result().entries
    if behavior == "delete":
        assert [(e.key, e.value) for e in left] == [(prefix + "c", b"free")]
    else:
        assert [(e.value, e.session) for e in left] == [(b"held", None), (b"held", None), (b"free", None)]
        assert left[0].modify_index == left[1].modify_index > left[0].create_index
    other = store.session_create(10, name="next")
    assert store.acquire(prefix + "a", b"1", other)  # no lock delay was asked for
    store.session_destroy(other)


def test_a_lock_delay_keeps_others_out_for_its_time(store, prefix):
    key = prefix + "k"
    session = store.session_create(10, name="t", lock_delay_s=1)
    assert store.acquire(key, b"1", session)
    start = time.monotonic()
    store.session_destroy(session)
    other = store.session_create(10, name="next")
    assert not store.acquire(key, b"2", other)
    result = store.txn([Op("lock", key, b"2", session=other)])
    assert (result.ok, result.errors[0].what) == (False, f'failed to lock key "{key}" due to lock delay')
    assert store.put(key, b"anybody")  # only locks are kept out
    while not store.acquire(key, b"2", other):
        time.sleep(0.02)
    assert 0.9 < time.monotonic() - start < 1.6
    store.session_destroy(other)


def test_a_released_lock_has_no_delay(store, prefix):
    one, two = (store.session_create(10, name=n, lock_delay_s=5) for n in ("one", "two"))
    assert store.acquire(prefix + "k", b"1", one)
    assert store.release(prefix + "k", b"1", one)
    assert store.acquire(prefix + "k", b"1", two)


def test_sessions_end_twice_their_ttl_after_the_last_renewal(lives):
    for life in lives:
        assert 19.9 < life.result(40) < 21.5
