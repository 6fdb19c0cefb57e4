"""What a token without rights meets at a real Consul."""

from __future__ import annotations

import json

import pytest

from yurt.kv import Op, Store, StoreDenied


@pytest.fixture
def limited(consul, prefix):
    """A token that may read one prefix, write another and do no more."""
    with Store(consul.address, consul.token) as root:

        def make(path, form):
            return json.loads(root._call("PUT", path, body=json.dumps(form).encode()).body)

        rules = f'key_prefix "{prefix}read/" {{ policy = "read" }} key_prefix "{prefix}write/" {{ policy = "write" }}'
        policy = make("/v1/acl/policy", {"Name": prefix.strip("/"), "Rules": rules})
        token = make("/v1/acl/token", {"Policies": [{"ID": policy["ID"]}]})
        root.put(prefix + "read/a", b"1")
        root.put(prefix + "none/a", b"1")
        with Store(consul.address, token["SecretID"]) as store:
            yield store


def test_what_is_denied_names_the_right(limited, prefix):
    assert limited.put(prefix + "write/a", b"1")
    assert limited.get(prefix + "read/a").value == b"1"
    for call in (
        lambda: limited.put(prefix + "read/a", b"2"),
        lambda: limited.delete(prefix + "read/a"),
        lambda: limited.delete_prefix(prefix + "read/"),
        lambda: limited.txn([Op("set", prefix + "read/a", b"2")]),
    ):
        with pytest.raises(StoreDenied, match=rf'key_prefix "{prefix}" {{ policy = "write" }}'):
            call()
    with pytest.raises(StoreDenied, match=rf'key_prefix "{prefix}" {{ policy = "read" }}'):
        limited.get(prefix + "none/a")
    with pytest.raises(StoreDenied, match="session_prefix"):
        limited.session_create(10, name="t")


def test_lists_leave_out_what_may_not_be_read(limited, prefix):
    assert limited.keys(prefix) == [prefix + "read/a"]
    assert limited.list(prefix + "none/") == []
    assert limited.watch(prefix + "none/", 0, 1).entries == ()
