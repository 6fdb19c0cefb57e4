"""Both stores of the contract: the embedded one, and a real Consul where there is one."""

from __future__ import annotations

import contextlib
import time
import uuid

import pytest

from tests.kv.scripted_store import Scripted
from tests.kv.store_later import Later
from yurt.kv import Store
from yurt.kv.wire import Connection


@pytest.fixture
def store(served):
    with Store(served.address, served.token) as store:
        yield store


@pytest.fixture
def prefix():
    """A place in the store that no other test knows."""
    return f"t-{uuid.uuid4().hex[:8]}/"


@pytest.fixture
def http(served):
    """Requests past the client's methods: ``http("GET", "/v1/...") -> (status, headers, body)``."""

    def request(method, path, body=None, token=served.token, headers=()):
        head = f"{method} {path} HTTP/1.1\r\nHost: test\r\nContent-Length: {len(body or b'')}\r\n"
        if token is not None:
            head += f"X-Consul-Token: {token}\r\n"
        for name, value in headers:
            head += f"{name}: {value}\r\n"
        host, _, port = served.address.removeprefix("http://").partition(":")
        connection = Connection(host, int(port), None, "")
        try:
            answer = connection.exchange(head.encode() + b"\r\n" + (body or b""), timeout_s=10, idempotent=False)
        finally:
            connection.close()
        return answer.status, answer.headers, answer.body

    return request


@pytest.fixture(scope="session")
def lives(request):
    """Sessions of the shortest TTL take 20 s to end: on both stores at once, while the other tests run."""
    served = [request.getfixturevalue("embedded")]
    with contextlib.suppress(pytest.skip.Exception):
        served.append(request.getfixturevalue("consul"))
    return [Later(lambda at=at: live_and_end(at, "lives/")) for at in served]


def live_and_end(at, prefix):
    with Store(at.address, at.token) as store:
        quiet, renewed = (store.session_create(10, name=n, behavior="delete") for n in ("quiet", "renewed"))
        start = time.monotonic()
        assert store.acquire(prefix + "quiet", b"1", quiet)
        assert store.acquire(prefix + "renewed", b"1", renewed)
        time.sleep(5)
        assert store.session_renew(renewed)
        index, entries = store.watch(prefix, 0, 60)
        assert len(entries) == 2
        entries = store.watch(prefix, index, 30).entries
        took_s = time.monotonic() - start
        assert [e.key for e in entries] == [prefix + "renewed"]
        assert store.session_info(quiet) is None
        assert store.session_info(renewed) is not None
        store.session_destroy(renewed)
    return took_s


@pytest.fixture
def scripted():
    with contextlib.ExitStack() as stack:

        def make(*connections, wrap=None, **options):
            server = stack.enter_context(contextlib.closing(Scripted(*connections, wrap=wrap)))
            address = server.address if wrap is None else server.address.replace("http", "https")
            store = stack.enter_context(Store(address, "token", **options))
            return server, store

        yield make
