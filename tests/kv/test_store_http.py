"""Refusals, status codes and shapes on the wire: the embedded store and a real Consul alike."""

from __future__ import annotations

import json

import pytest

from yurt.kv import Store, StoreDenied

GONE = "11111111-1111-1111-1111-111111111111"


def test_no_token_and_a_wrong_token_are_told_apart(served, prefix):
    with Store(served.address) as store, pytest.raises(StoreDenied, match="asks for a token"):
        store.put(prefix + "k", b"1")
    with Store(served.address, "nonsense") as store, pytest.raises(StoreDenied, match="does not know this token"):
        store.put(prefix + "k", b"1")


@pytest.mark.parametrize("headers", [[("Authorization", "Bearer {}")], [("X-Consul-Token", "{}")]])
def test_the_token_is_taken_from_either_header(http, served, headers):
    filled = [(name, value.format(served.token)) for name, value in headers]
    assert http("GET", "/v1/session/list", token=None, headers=filled)[0] == 200


REQUESTS = [
    ("GET", "/v1/kv/", None, 400),
    ("PUT", "/v1/kv/", b"x", 400),
    ("DELETE", "/v1/kv/", None, 400),
    ("POST", "/v1/kv/k", b"x", 405),
    ("GET", "/v1/kv/k?index=zz", None, 400),
    ("GET", "/v1/kv/k?index=-1", None, 400),
    ("GET", "/v1/kv/k?index=1&wait=zz", None, 400),
    ("GET", "/v1/nope", None, 404),
    ("DELETE", "/v1/kv/k?recurse&cas=3", None, 400),
    ("PUT", f"/v1/kv/k?acquire={GONE}&cas=3", b"x", 400),
    ("PUT", f"/v1/kv/k?acquire={GONE}", b"x", 500),
    ("PUT", "/v1/kv/k?acquire=", b"x", 500),
    ("PUT", "/v1/session/create", b"{bad", 400),
    ("PUT", "/v1/session/create", b"[]", 400),
    ("PUT", "/v1/session/create", b'{"TTL": 15}', 400),
    ("PUT", "/v1/session/create", b'{"TTL": "zz"}', 500),
    ("PUT", "/v1/session/create", b'{"TTL": "15s", "Behavior": "x"}', 500),
    ("PUT", "/v1/session/create", b'{"LockDelay": "zz"}', 400),
    ("PUT", "/v1/session/create", b'{"TTL": "15s", "Checks": [], "Unknown": 1}', 200),
    ("PUT", "/v1/session/renew/", None, 400),
    ("PUT", f"/v1/session/renew/{GONE}", None, 404),
    ("PUT", f"/v1/session/destroy/{GONE}", None, 200),
    ("GET", f"/v1/session/info/{GONE}", None, 200),
    ("GET", "/v1/status/leader", None, 200),
    ("GET", "/v1/txn", None, 405),
    ("PUT", "/v1/txn", b"{bad", 400),
    ("PUT", "/v1/txn", b'{"a": 1}', 400),
    ("PUT", "/v1/txn", b"[]", 200),
]


@pytest.mark.parametrize(("method", "path", "body", "status"), REQUESTS, ids=lambda v: str(v)[:40])
def test_status_codes(http, method, path, body, status):
    assert http(method, path, body)[0] == status


def test_raw_values_separated_keys_and_headers(http, store, prefix):
    for name in ("a", "b/1", "b/2", "c/"):
        store.put(prefix + name, b"\x00raw")
    status, headers, body = http("GET", f"/v1/kv/{prefix}a?raw")
    assert (status, body) == (200, b"\x00raw")
    assert int(headers["x-consul-index"]) == store.get(prefix + "a").modify_index
    body = http("GET", f"/v1/kv/{prefix}?keys&separator=/")[2]
    assert json.loads(body) == [prefix + n for n in ("a", "b/", "c/")]
    status, headers, body = http("GET", f"/v1/kv/{prefix}none")
    assert (status, body) == (404, b"")
    assert int(headers["x-consul-index"]) > 0


def test_the_shape_of_an_entry(http, store, prefix):
    store.put(prefix + "k", b"")
    (form,) = json.loads(http("GET", f"/v1/kv/{prefix}k")[2])
    assert set(form) == {"LockIndex", "Key", "Flags", "Value", "CreateIndex", "ModifyIndex"}
    assert form["Value"] is None
