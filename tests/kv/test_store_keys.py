"""Keys, compare-and-set and limits: the embedded store and a real Consul alike."""

from __future__ import annotations

import threading

import pytest

from yurt.kv import Store, StoreTooLarge

pytestmark = pytest.mark.usefixtures("lives")  # the slow test of the sessions runs meanwhile


@pytest.mark.parametrize("value", [b"", b"x", b'{"a": 1}', bytes(range(256)), b"v" * 524_288])
def test_a_value_comes_back_as_it_was_put(store, prefix, value):
    assert store.put(prefix + "k", value, flags=2**64 - 1)
    entry = store.get(prefix + "k")
    assert (entry.key, entry.value, entry.flags, entry.session, entry.lock_index) == (
        prefix + "k",
        value,
        2**64 - 1,
        None,
        0,
    )
    assert entry.create_index == entry.modify_index > 0
    assert store.list(prefix) == [entry]


@pytest.mark.parametrize("name", ["worker/2", "a b", "ä€", "q?x=1&y#z", "100%", "a+b", "~", "folder/", "%2F"])
def test_any_name_will_do(store, prefix, name):
    assert store.put(prefix + name, b"1")
    assert store.get(prefix + name).value == b"1"
    assert store.keys(prefix) == [prefix + name]
    assert store.delete(prefix + name)


@pytest.mark.parametrize("name", ["", "/a", "a//b", "a/./b", "a/../b", "..", "//"])
def test_names_that_consul_would_redirect_are_refused(store, name):
    with pytest.raises(ValueError, match="not a key"):
        store.put(name, b"1")


def test_what_is_missing(store, prefix):
    assert store.get(prefix + "k") is None
    assert store.list(prefix) == []
    assert store.keys(prefix) == []
    assert store.delete(prefix + "k")
    store.delete_prefix(prefix)


def test_lists_are_in_the_order_of_the_keys_and_hold_the_prefix_only(store, prefix):
    for name in ("b", "a/2", "a/10", "a", "ab"):
        store.put(prefix + name, name.encode())
    assert store.keys(prefix) == [prefix + n for n in ("a", "a/10", "a/2", "ab", "b")]
    assert [e.value for e in store.list(prefix + "a/")] == [b"10".join((b"a/", b"")), b"a/2"]
    assert store.keys(prefix + "a") == [prefix + n for n in ("a", "a/10", "a/2", "ab")]


def test_delete_takes_one_and_delete_prefix_all(store, prefix):
    for name in ("a", "a/1", "a/2", "b"):
        store.put(prefix + name, b"1")
    assert store.delete(prefix + "a")
    assert store.keys(prefix) == [prefix + n for n in ("a/1", "a/2", "b")]
    store.delete_prefix(prefix + "a/")
    assert store.keys(prefix) == [prefix + "b"]
    with pytest.raises(ValueError, match="everything"):
        store.delete_prefix("")


def test_put_with_cas(store, prefix):
    key = prefix + "k"
    assert not store.put(key, b"1", cas=99)
    assert store.put(key, b"1", cas=0)
    assert not store.put(key, b"2", cas=0)
    first = store.get(key)
    assert store.put(key, b"2", cas=first.modify_index)
    assert not store.put(key, b"3", cas=first.modify_index)
    second = store.get(key)
    assert (second.value, second.create_index) == (b"2", first.create_index)
    assert second.modify_index > first.modify_index


def test_delete_with_cas(store, prefix):
    key = prefix + "k"
    assert store.delete(key, cas=5)  # already so
    store.put(key, b"1")
    index = store.get(key).modify_index
    assert not store.delete(key, cas=0)
    assert not store.delete(key, cas=index - 1)
    assert store.delete(key, cas=index)
    assert store.get(key) is None


def test_one_of_many_wins_a_cas(served, prefix):
    won = []
    start = threading.Barrier(8)

    def race(number):
        with Store(served.address, served.token) as store:
            start.wait()
            if store.put(prefix + "k", b"%d" % number, cas=0):
                won.append(number)

    threads = [threading.Thread(target=race, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1


def test_the_same_value_changes_no_index(store, prefix):
    store.put(prefix + "k", b"1", flags=3)
    before = store.get(prefix + "k")
    assert store.put(prefix + "k", b"1", flags=3)
    assert store.put(prefix + "k", b"1", flags=3, cas=before.modify_index)
    assert store.get(prefix + "k") == before
    store.put(prefix + "k", b"1", flags=4)
    assert store.get(prefix + "k").modify_index > before.modify_index


def test_a_value_over_the_limit_is_refused(store, http, prefix):
    with pytest.raises(StoreTooLarge, match=r"524,289.*524,288"):
        store.put(prefix + "k", b"v" * 524_289)
    status, _, body = http("PUT", f"/v1/kv/{prefix}k", b"v" * 524_289)
    assert status == 413
    assert body.startswith(b"Request body(524289 bytes) too large, max size: 524288 bytes")
    assert store.get(prefix + "k") is None
