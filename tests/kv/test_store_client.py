"""The client against stores that answer oddly, slowly or not at all: scripted ones, to the byte."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

import pytest

from tests.kv.scripted_store import reply
from yurt.kv import (
    Op,
    SessionGone,
    Store,
    StoreBusy,
    StoreDenied,
    StoreRefused,
    StoreRejected,
    StoreTimeout,
    StoreTooLarge,
    StoreUnreachable,
    errors,
)

# What goes out


def test_a_request_as_it_is_sent(scripted):
    server, store = scripted([reply()], datacenter="dc 2")
    store.put("a b/ä", b"body", cas=3, flags=4)
    host = server.address.removeprefix("http://")
    assert server.requests == [
        b"PUT /v1/kv/a%20b/%C3%A4?flags=4&cas=3&dc=dc%202 HTTP/1.1\r\n"
        b"Host: " + host.encode() + b"\r\nX-Consul-Token: token\r\nContent-Length: 4\r\n\r\nbody"
    ]


def test_a_session_never_depends_on_the_health_of_a_node(scripted):
    server, store = scripted([reply(b'{"ID": "x"}')])
    assert store.session_create(12.5, name="n") == "x"
    assert b'"Checks": []' in server.requests[0]
    assert b'"TTL": "12500ms"' in server.requests[0]


def test_a_connection_is_kept(scripted):
    server, store = scripted([reply()] * 3)
    assert [store.put("a", b"1") for _ in range(3)] == [True] * 3
    assert len(server.requests) == 3


# What comes back

CHUNKED = (
    b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n6;x=y\r\n["a", \r\n4\r\n"b"]\r\n0\r\nTrailer: x\r\n\r\n'
)
SHAPES = {
    "chunks": CHUNKED,
    "an interim answer": b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + reply(b'["a", "b"]'),
    "until the end": b'HTTP/1.1 200 OK\r\n\r\n["a", "b"]',
    "HTTP/1.0": b'HTTP/1.0 200 OK\r\nContent-Length: 10\r\n\r\n["a", "b"]',
}


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_of_an_answer(scripted, shape):
    server, store = scripted([SHAPES[shape]])
    if shape == "until the end":
        threading.Timer(0.1, server.close).start()
    assert store.keys("") == ["a", "b"]


def test_an_answer_in_single_bytes(scripted):
    server, store = scripted([b""])

    def drip():
        while not server._open:
            time.sleep(0.01)
        for byte in CHUNKED:
            server._open[0].sendall(bytes([byte]))

    threading.Thread(target=drip, daemon=True).start()
    assert store.keys("") == ["a", "b"]


STATUS = [
    (500, b"No cluster leader", StoreBusy, "No cluster leader"),
    (500, b"rpc error making call: EOF", StoreBusy, "cannot serve now"),
    (500, b"raft: leadership lost while committing log", StoreBusy, "leadership"),
    (429, b"Your IP is issuing too many concurrent connections", StoreBusy, "429"),
    (502, b"Bad Gateway", StoreBusy, "502"),
    (503, b"", StoreBusy, "503"),
    (403, b"Permission denied", StoreDenied, r'key_prefix "yurt/" \{ policy = "write" \}'),
    (403, b"rpc error making call: Permission denied", StoreDenied, "key_prefix"),
    (500, b"rpc error making call: Permission denied", StoreDenied, "key_prefix"),
    (403, b"ACL not found", StoreDenied, "does not know this token"),
    (500, b"rpc error making call: ACL not found", StoreDenied, "does not know this token"),
    (413, b"Request body(9 bytes) too large", StoreTooLarge, "too large"),
    (500, b'invalid session "x"', SessionGone, "gone"),
    (500, b'rpc error making call: invalid session "x"', SessionGone, "gone"),
    (500, b"Invalid Session TTL '1', must be between", StoreRejected, "TTL"),
    (400, b"Missing key name", StoreRejected, r"PUT /v1/kv/yurt/runs/a.*\(400\): Missing"),
    (301, b"", StoreRejected, "301"),
    (404, b"", StoreRejected, "404"),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "kind", "match"), STATUS)
def test_every_refusal_has_its_error(scripted, status, body, kind, match):
    _, store = scripted([reply(body, status)])
    with pytest.raises(kind, match=match) as caught:
        store.put("yurt/runs/a", b"1")
    assert type(caught.value) is kind
    assert caught.value.retryable == (kind is StoreBusy)


def test_the_right_that_a_session_and_a_read_need(scripted):
    _, store = scripted([reply(b"Permission denied", 403)] * 2)
    with pytest.raises(StoreDenied, match=r'session_prefix "" \{ policy = "write" \}'):
        store.session_create(10, name="n")
    with pytest.raises(StoreDenied, match=r'key_prefix "yurt/" \{ policy = "read" \}'):
        store.get("yurt/a")


def test_a_denied_transaction_is_denied_and_not_a_conflict(scripted):
    body = b'{"Results": null, "Errors": [{"OpIndex": 0, "What": "Permission denied"}]}'
    _, store = scripted([reply(body, 409)])
    with pytest.raises(StoreDenied, match="key_prefix"):
        store.txn([Op("set", "yurt/a", b"1")])


NOT_CONSUL = [b"SSH-2.0-OpenSSH_9.2\r\n\r\n", reply(b"<html>"), reply(b'{"a": 1}'), reply(b"[1]"), b"x" * 100_000]


@pytest.mark.parametrize("data", NOT_CONSUL, ids=lambda d: d[:12])
def test_what_is_no_consul_is_said_to_be_none(scripted, data):
    _, store = scripted([data])
    with pytest.raises(StoreRejected, match=r"not a Consul|not JSON|unknown shape"):
        store.list("a")


# Connections that break


def test_nobody_listens():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with Store(f"http://127.0.0.1:{port}") as store, pytest.raises(StoreRefused, match="nobody listens") as caught:
        store.get("a")
    assert caught.value.address == f"127.0.0.1:{port}"
    assert caught.value.retryable


def test_no_answer_in_time(scripted):
    _, store = scripted([b""], timeout_s=0.2)
    start = time.monotonic()
    with pytest.raises(StoreTimeout, match=r"within 0\.2 s") as caught:
        store.get("a")
    assert time.monotonic() - start < 1
    assert caught.value.address == store.address.removeprefix("http://")


def test_an_answer_that_drips_for_ever_is_a_timeout(scripted):
    server, store = scripted([b""], timeout_s=0.3)

    def drip():
        while not server._open:
            time.sleep(0.01)
        with contextlib.suppress(OSError):
            while True:
                server._open[0].sendall(b"HTTP/1.1 200 OK"[:1])
                time.sleep(0.02)

    threading.Thread(target=drip, daemon=True).start()
    start = time.monotonic()
    with pytest.raises(StoreTimeout):
        store.get("a")
    assert time.monotonic() - start < 1


def test_a_name_that_does_not_resolve():
    with Store("http://no-such-host.invalid:8500") as store, pytest.raises(StoreUnreachable, match="cannot be reached"):
        store.get("a")


def test_a_kept_connection_that_ended_is_opened_anew_even_for_a_compare_and_set(scripted):
    server, store = scripted([reply(), None], [reply()])
    store.put("a", b"1")
    store._connection("call")._sock.sendall(b"x")  # lets the script hang up
    time.sleep(0.1)
    assert store.put("a", b"1", cas=3)
    assert len(server.requests) == 3


def test_only_what_may_be_sent_twice_is_sent_twice(scripted):
    """The peer takes the request on a kept connection and hangs up instead of answering."""
    server, store = scripted([reply(), None], [reply()])
    store.put("a", b"1")
    assert store.put("a", b"2")
    assert len(server.requests) == 3
    for call in (
        lambda s: s.put("a", b"1", cas=3),
        lambda s: s.delete("a", cas=3),
        lambda s: s.release("a", b"1", "x"),
        lambda s: s.session_create(10, name="n"),
        lambda s: s.txn([Op("set", "a", b"1")]),
    ):
        server, store = scripted([reply(), None], [reply()])
        store.put("a", b"1")
        with pytest.raises(StoreRefused, match="hung up"):
            call(store)
        assert len(server.requests) == 2


def test_a_new_connection_that_ends_is_not_tried_again(scripted):
    server, store = scripted([None], [reply()])
    with pytest.raises(StoreRefused, match="hung up"):
        store.put("a", b"1")
    assert len(server.requests) == 1
    assert store.put("a", b"1")


def test_an_answer_that_ends_early(scripted):
    server, store = scripted([reply(b"[]")[:-1]])
    threading.Timer(0.1, server.close).start()
    with pytest.raises(StoreRefused, match="hung up"):
        store.get("a")


def test_a_call_can_be_closed_from_another_thread(scripted):
    _, store = scripted([b""])
    threading.Timer(0.1, store.close).start()
    start = time.monotonic()
    with pytest.raises(errors.StoreClosed):
        store.get("a")
    assert time.monotonic() - start < 1
    with pytest.raises(errors.StoreClosed):
        store.watcher("a")


def test_each_thread_has_a_connection_of_its_own_and_drops_it(scripted):
    _, store = scripted(*[[reply()]] * 5)
    for _ in range(5):
        thread = threading.Thread(target=store.put, args=("a", b"1"))
        thread.start()
        thread.join()
    assert len(store._connections) == 0


# Watching


def test_an_index_that_went_backwards_becomes_zero(scripted):
    _, store = scripted([reply(b"[]", headers=b"X-Consul-Index: 3\r\n")] * 2)
    assert store.watch("a/", 9, 1).index == 0
    assert store.watch("a/", 2, 1).index == 3


def test_an_index_is_never_zero_by_itself(scripted):
    _, store = scripted([reply(b"", 404, headers=b"X-Consul-Index: 0\r\n")])
    assert store.watch("a/", 0, 1) == (1, ())


def test_a_watch_says_how_long(scripted):
    server, store = scripted([reply(b"[]")] * 3)
    store.watch("a/", 0, 60)
    store.watch("a/", 3, 0.25, recurse=False)
    store.watch("a/", 3, 9999)
    paths = [request.split(b" ")[1] for request in server.requests]
    assert paths == [
        b"/v1/kv/a/?recurse", b"/v1/kv/a/?index=3&wait=250ms", b"/v1/kv/a/?recurse&index=3&wait=600s",
    ]  # fmt: skip


def test_a_watcher_begins_anew_after_an_error(scripted):
    server, store = scripted(
        [reply(b"[]"), reply(b"No cluster leader", 500), reply(b"[]", headers=b"X-Consul-Index: 2\r\n"), reply(b"[]")]
    )
    watch = store.watcher("a/")
    watch.next()
    with pytest.raises(StoreBusy):
        watch.next()
    assert watch.next().index == 2
    watch.next()
    asked = [b"index=" in request for request in server.requests]
    assert asked == [False, True, False, True]
