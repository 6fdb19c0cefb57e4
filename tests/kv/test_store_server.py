"""The embedded store against peers that are many, slow, silent or wrong, and how little it costs."""

from __future__ import annotations

import contextlib
import os
import random
import socket
import threading
import time

import pytest

from yurt.kv import Store, StoreRefused, StoreRejected, StoreTimeout
from yurt.kv import loop as loop_module
from yurt.kv import peer as peer_module
from yurt.kv.server import EmbeddedStore
from yurt.kv.wire import Connection

TOKEN = "token"
HEAD = b"Host: x\r\nX-Consul-Token: token\r\n"


@pytest.fixture
def server():
    with EmbeddedStore(token=TOKEN) as server:
        yield server


@pytest.fixture
def store(server):
    with Store(server.address, TOKEN) as store:
        yield store


def connect(server):
    sock = socket.create_connection((server.host, server.port), timeout=10)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def answer(server, data):
    """What comes back for `data`, until the end of the connection."""
    with connect(server) as sock:
        try:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
        except OSError:
            pass
        out = b""
        with contextlib.suppress(ConnectionError):
            while part := sock.recv(65536):
                out += part
        return out


BAD = {
    "noise": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    "no version": (b"GET /v1/kv/a\r\n\r\n", 400),
    "another protocol": (b"PRI * HTTP/2.0\r\n\r\n", 505),
    "a header without a name": (b"GET / HTTP/1.1\r\n: x\r\n\r\n", 400),
    "a folded header": (b"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", 400),
    "a broken escape": (b"GET /v1/kv/%zz HTTP/1.1\r\n" + HEAD + b"\r\n", 400),
    "not UTF-8": (b"GET /v1/kv/%ff HTTP/1.1\r\n" + HEAD + b"\r\n", 400),
    "a path without a slash": (b"GET kv HTTP/1.1\r\n" + HEAD + b"\r\n", 400),
    "two lengths": (b"PUT /v1/kv/a HTTP/1.1\r\n" + HEAD + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400),
    "a negative length": (b"PUT /v1/kv/a HTTP/1.1\r\n" + HEAD + b"Content-Length: -1\r\n\r\n", 400),
    "chunks": (b"PUT /v1/kv/a HTTP/1.1\r\n" + HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n", 411),
    "a long head": (b"GET /v1/kv/" + b"a" * 20_000, 431),
    "a huge body": (b"PUT /v1/kv/a HTTP/1.1\r\n" + HEAD + b"Content-Length: 999999999999\r\n\r\nxxx", 413),
    "no token": (b"PUT /v1/kv/a HTTP/1.1\r\nContent-Length: 1\r\n\r\nx", 403),
    "a wrong token": (b"GET /v1/kv/a HTTP/1.1\r\nX-Consul-Token: tokem\r\n\r\n", 403),
    "two tokens": (b"GET /v1/kv/a HTTP/1.1\r\n" + HEAD + HEAD + b"\r\n", 400),
    "a token that is not ASCII": (b"GET /v1/kv/a HTTP/1.1\r\nX-Consul-Token: t\xffken\r\n\r\n", 403),
    "basic authorization": (b"GET /v1/kv/a HTTP/1.1\r\nAuthorization: Basic token\r\n\r\n", 403),
    "deep JSON": (b"PUT /v1/txn HTTP/1.1\r\n" + HEAD + b"Content-Length: 100000\r\nConnection: close\r\n\r\n" + b"[" * 100_000, 400),
    "an unknown method": (b"FROB /v1/kv/a HTTP/1.1\r\n" + HEAD + b"Connection: close\r\n\r\n", 405),
    "an index too large": (b"GET /v1/kv/a?index=99999999999999999999999 HTTP/1.1\r\n" + HEAD + b"Connection: close\r\n\r\n", 400),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_garbage_gets_its_status_and_no_traceback(server, store, capfd, case):
    data, status = BAD[case]
    got = answer(server, data)
    assert got.startswith(b"HTTP/1.1 %d " % status), got[:200]
    assert store.list("") == []
    assert capfd.readouterr().err == ""


def test_random_bytes_do_no_harm(server, store, capfd):
    numbers = random.Random(7)
    good = b"PUT /v1/kv/a?cas=0 HTTP/1.1\r\n" + HEAD + b"Content-Length: 2\r\n\r\nxy"
    for _ in range(150):
        data = bytearray(good)
        for _ in range(numbers.randrange(1, 6)):
            data[numbers.randrange(len(data))] = numbers.randrange(256)
        if numbers.random() < 0.3:
            del data[numbers.randrange(len(data)) :]
        answer(server, bytes(data))
    store.put("still", b"here")
    assert store.get("still").value == b"here"
    assert capfd.readouterr().err == ""


def test_a_request_may_come_byte_by_byte_and_many_in_one_piece(server):
    one = b"PUT /v1/kv/a HTTP/1.1\r\n" + HEAD + b"Content-Length: 1\r\n\r\nx"
    with connect(server) as sock:
        for byte in one:
            sock.sendall(bytes([byte]))
        assert sock.recv(4096).endswith(b"true")
    last = b"GET /v1/kv/a?raw HTTP/1.1\r\n" + HEAD + b"Connection: close\r\n\r\n"
    assert answer(server, one * 50 + last).count(b"200 OK") == 51


def test_curl_may_ask_before_it_sends(server):
    with connect(server) as sock:
        sock.sendall(b"PUT /v1/kv/a HTTP/1.1\r\n" + HEAD + b"Expect: 100-continue\r\nContent-Length: 1\r\n\r\n")
        assert sock.recv(4096) == b"HTTP/1.1 100 Continue\r\n\r\n"
        sock.sendall(b"x")
        assert sock.recv(4096).endswith(b"true")


@pytest.mark.parametrize(
    "sent", [b"", b"GET /v1/kv", b"PUT /v1/kv/a HTTP/1.1\r\n" + HEAD + b"Content-Length: 9\r\n\r\nx"]
)
def test_a_slow_peer_is_let_go(monkeypatch, sent):
    monkeypatch.setattr(peer_module, "REQUEST_TIMEOUT_S", 0.2)
    with EmbeddedStore(token=TOKEN) as server, connect(server) as sock:
        start = time.monotonic()
        sock.sendall(sent)
        assert sock.recv(4096)[:12] in (b"", b"HTTP/1.1 408")
        assert 0.1 < time.monotonic() - start < 2


def test_a_known_peer_may_be_idle(monkeypatch):
    monkeypatch.setattr(peer_module, "REQUEST_TIMEOUT_S", 0.1)
    with EmbeddedStore(token=TOKEN) as server, connect(server) as sock:
        for _ in range(2):
            sock.sendall(b"GET /v1/status/leader HTTP/1.1\r\n" + HEAD + b"\r\n")
            assert b"200 OK" in sock.recv(4096)
            time.sleep(0.3)


def test_a_peer_that_takes_no_answer_is_let_go(monkeypatch, store, server):
    monkeypatch.setattr(peer_module, "WRITE_TIMEOUT_S", 0.3)
    for n in range(20):
        store.put(f"big/{n}", b"v" * 500_000)
    with connect(server) as sock:
        sock.sendall(b"GET /v1/kv/big/?recurse HTTP/1.1\r\n" + HEAD + b"\r\n")
        time.sleep(0.1)
        assert store.get("big/1") is not None  # the others are served
        time.sleep(0.6)
        got = 0
        with contextlib.suppress(ConnectionError):
            while part := sock.recv(1 << 20):
                got += len(part)
    assert got < 13_000_000


def test_a_large_answer_arrives_whole(store):
    for n in range(20):
        store.put(f"big/{n:02}", b"%02d" % n * 250_000)
    assert [e.value[:2] for e in store.list("big/")] == [b"%02d" % n for n in range(20)]


def test_too_many_connections_are_told_so(monkeypatch):
    monkeypatch.setattr(loop_module, "PEER_LIMIT", 5)
    with EmbeddedStore(token=TOKEN) as server, contextlib.ExitStack() as stack:
        socks = [stack.enter_context(connect(server)) for _ in range(5)]
        time.sleep(0.1)
        assert answer(server, b"").startswith(b"HTTP/1.1 503")
        socks[0].close()
        time.sleep(0.1)
        with Store(server.address, TOKEN) as store:
            assert store.put("a", b"1")


def test_a_watcher_that_left_is_forgotten(server, store):
    store.put("a", b"1")
    with connect(server) as sock:
        sock.sendall(b"GET /v1/kv/a?index=%d HTTP/1.1\r\n" % store.get("a").modify_index + HEAD + b"\r\n")
        time.sleep(0.1)
        assert len(server.state._waiters) == 1
    time.sleep(0.1)
    assert len(server.state._waiters) == 0


def test_the_process_that_serves_needs_no_http(server, store):
    store.put("a/1", b"1")
    watch = server.state.watcher("a/")
    assert [e.value for e in watch.next().entries] == [b"1"]
    threading.Timer(0.05, store.put, ("a/1", b"2")).start()
    assert [e.value for e in watch.next(60).entries] == [b"2"]
    remote = store.watcher("a/")
    remote.next()
    threading.Timer(0.05, server.state.put, ("a/1", b"3")).start()
    start = time.monotonic()
    assert [e.value for e in remote.next(60).entries] == [b"3"]
    assert time.monotonic() - start < 0.5


def test_a_session_that_ends_wakes_remote_watchers():
    with EmbeddedStore(token=TOKEN, min_ttl_s=0.01) as server, Store(server.address, TOKEN) as store:
        store.put("a/0", b"1")
        watch = store.watcher("a/")
        session = store.session_create(0.1, name="t", behavior="delete")
        store.acquire("a/1", b"1", session)
        assert len(watch.next().entries) == 2
        start = time.monotonic()
        assert len(watch.next(60).entries) == 1
        assert time.monotonic() - start < 0.5


def test_closing_ends_blocked_queries_and_connections(server):
    store = Store(server.address, TOKEN)
    store.put("a", b"1")
    watch = store.watcher("a")
    watch.next()
    local = server.state.watcher("a")
    local.next()
    got = []

    def wait(watch):
        try:
            got.append(watch.next(60))
        except Exception as error:
            got.append(type(error))

    threads = [threading.Thread(target=wait, args=(w,)) for w in (watch, local)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    start = time.monotonic()
    server.close()
    for thread in threads:
        thread.join(5)
    assert time.monotonic() - start < 1
    assert set(got) == {StoreRefused, None}
    with pytest.raises(StoreRefused, match="nobody listens"):
        store.get("a")
    server.close()  # again is no error


def test_a_port_that_is_taken(server):
    with pytest.raises(StoreRejected, match="cannot listen"):
        EmbeddedStore(port=server.port, token=TOKEN).start()


def test_a_store_comes_back_empty_on_the_same_port():
    server = EmbeddedStore(token=TOKEN).start()
    with Store(server.address, TOKEN) as store:
        for n in range(20):
            store.put("a", b"%d" % n)
        watch = store.watcher("a")
        watch.next()
        server.close()
        with pytest.raises(StoreRefused):
            watch.next(60)
        with EmbeddedStore(port=server.port, token=TOKEN):
            assert watch.next(60).entries == ()
            assert store.put("a", b"new", cas=0)


def test_it_listens_on_other_addresses_too():
    with EmbeddedStore("0.0.0.0", token=TOKEN) as server, Store(server.address, TOKEN) as store:
        assert store.put("a", b"1")
    with contextlib.suppress(StoreRejected), contextlib.ExitStack() as stack:  # where there is IPv6
        server = stack.enter_context(EmbeddedStore("::1", token=TOKEN))
        store = stack.enter_context(Store(server.address, TOKEN))
        assert store.put("a", b"1")


@pytest.mark.parametrize("path", ["/v1/kv/a", "/v1/status/leader", "/v1/session/list", "/nonsense"])
def test_every_path_asks_for_the_token(server, path):
    assert answer(server, f"GET {path} HTTP/1.1\r\n\r\n".encode()).startswith(b"HTTP/1.1 403")


def test_two_hundred_watchers_cost_nothing_while_idle_and_all_wake(server, store):
    store.put("w/a", b"0")
    index = store.get("w/a").modify_index
    request = b"GET /v1/kv/w/?recurse&index=%d&wait=10m HTTP/1.1\r\n" % index + HEAD + b"\r\n"
    store.session_create(3600, name="t")
    before = threading.active_count()
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(connect(server)) for _ in range(200)]
        for sock in socks:
            sock.sendall(request)
        time.sleep(0.3)
        assert len(server.state._waiters) == 200
        assert threading.active_count() == before
        start = time.process_time()
        time.sleep(1)
        assert time.process_time() - start < 0.02
        store.put("w/a", b"1")
        start = time.monotonic()
        for sock in socks:
            assert b'"Value":"MQ=="' in sock.recv(4096)
        assert time.monotonic() - start < 1


def test_a_put_reaches_a_watcher_at_once(store):
    store.put("w/a", b"0")
    watch = store.watcher("w/")
    watch.next()
    took = []
    for n in range(40):
        put_s = []

        def put(n=n, put_s=put_s):
            time.sleep(0.003)
            put_s.append(time.perf_counter())
            store.put("w/a", b"n%d" % n)

        thread = threading.Thread(target=put)
        thread.start()
        watch.next(10)
        took.append(time.perf_counter() - put_s[0])
        thread.join()
    assert sorted(took)[20] < 0.01  # measured: 0.0007; a loaded machine is given room


def test_out_of_descriptors_does_not_spin(store, server, monkeypatch):
    """Accepting fails while the process has no descriptor left, and goes on afterwards."""
    real = socket.socket.accept
    failures = []

    def accept(self):
        if len(failures) < 3:
            failures.append(1)
            raise OSError(24, os.strerror(24))
        return real(self)

    store.put("a", b"1")
    monkeypatch.setattr(socket.socket, "accept", accept)
    with Store(server.address, TOKEN) as other:
        start = time.monotonic()
        assert other.get("a").value == b"1"
        assert 0.4 < time.monotonic() - start < 2


def test_a_silent_store_is_a_timeout():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        connection = Connection("127.0.0.1", listener.getsockname()[1], None, "")
        with pytest.raises(StoreTimeout, match=r"no answer within 0\.2 s"):
            connection.exchange(b"GET / HTTP/1.1\r\n\r\n", timeout_s=0.2, idempotent=True)
