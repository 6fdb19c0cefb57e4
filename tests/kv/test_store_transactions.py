"""Transactions: the embedded store and a real Consul alike."""

from __future__ import annotations

import pytest

from yurt.kv import Op, StoreTooLarge

GONE = "11111111-1111-1111-1111-111111111111"


def test_a_transaction_is_applied_at_one_index(store, prefix):
    store.put(prefix + "old", b"0")
    old = store.get(prefix + "old")
    session = store.session_create(10, name="t")
    result = store.txn(
        [
            Op("check-not-exists", prefix + "a"),
            Op("check-index", prefix + "old", index=old.modify_index),
            Op("set", prefix + "a", b"1", flags=7),
            Op("cas", prefix + "b", b"2", index=0),
            Op("lock", prefix + "l", b"3", session=session),
            Op("check-session", prefix + "l", session=session),
            Op("get", prefix + "a"),
            Op("delete-cas", prefix + "old", index=old.modify_index),
            Op("get-tree", prefix),
        ]
    )
    assert (result.ok, result.errors) == (True, ())
    names = [e.key.removeprefix(prefix) for e in result.entries]
    assert names == ["old", "a", "b", "l", "l", "a", "a", "b", "l"]
    assert [e.value for e in result.entries] == [b"", b"", b"", b"", b"", b"1", b"1", b"2", b"3"]
    assert result.entries[5].flags == 7
    assert {e.modify_index for e in result.entries[1:]} == {store.get(prefix + "a").modify_index}
    assert store.keys(prefix) == [prefix + n for n in ("a", "b", "l")]
    assert store.txn([Op("unlock", prefix + "l", b"4", session=session), Op("delete", prefix + "b")]).ok
    assert store.get(prefix + "l").session is None
    assert store.txn([Op("delete-tree", prefix)]).ok
    assert store.list(prefix) == []


FAILURES = {
    "cas": (Op("cas", "k", b"2", index=1), 'failed to set key "K", index is stale'),
    "cas on nothing": (Op("cas", "none", b"2", index=1), 'failed to set key "N", index is stale'),
    "delete-cas": (Op("delete-cas", "k", index=1), 'failed to delete key "K", index is stale'),
    "get": (Op("get", "none"), 'key "N" doesn\'t exist'),
    "check-index": (Op("check-index", "k", index=1), 'failed index check for key "K", current modify index'),
    "check-index on nothing": (Op("check-index", "none", index=1), 'failed to check index, key "N" doesn\'t exist'),
    "check-session": (Op("check-session", "k", session=GONE), 'failed session check for key "K", current session "" !='),
    "check-session on nothing": (Op("check-session", "none", session=GONE), 'failed to check session, key "N" doesn\'t exist'),
    "check-not-exists": (Op("check-not-exists", "k"), 'key "K" exists'),
    "lock": (Op("lock", "k", b"", session=GONE), "invalid session"),
    "lock by nobody": (Op("lock", "k", b""), "missing session"),
    "unlock": (Op("unlock", "k", b"", session=GONE), 'failed to unlock key "K", lock isn\'t held, or is held by another session'),
    "unlock by nobody": (Op("unlock", "k", b""), "missing session"),
    "an unknown verb": (Op("frob", "k"), 'unknown KV verb "frob"'),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILURES)
def test_one_failure_undoes_a_transaction_and_says_why(store, prefix, case):
    op, what = FAILURES[case]
    store.put(prefix + "k", b"1")
    before = store.list(prefix)
    moved = Op(op.verb, prefix + op.key, op.value, op.index, op.session)
    result = store.txn([Op("set", prefix + "new", b"1"), moved, Op("delete", prefix + "k"), Op("get", prefix + "no")])
    assert (result.ok, result.entries) == (False, ())
    assert [e.op_index for e in result.errors] == [1, 3]
    expected = what.replace("K", prefix + "k").replace("N", prefix + "none") if '"' in what else what
    if "frob" in what:
        expected = what
    assert result.errors[0].what.startswith(expected)
    assert store.list(prefix) == before


def test_the_limits_of_a_transaction(store, prefix):
    assert store.txn([Op("set", f"{prefix}{n}", b"1") for n in range(64)]).ok
    with pytest.raises(StoreTooLarge, match="65 operations"):
        store.txn([Op("set", f"{prefix}{n}", b"1") for n in range(65)])
    assert store.txn([Op("set", prefix + "k", b"v" * 390_000)]).ok
    with pytest.raises(StoreTooLarge, match=r"base64 included.*524,288"):
        store.txn([Op("set", prefix + "k", b"v" * 400_000)])
