"""Both stores of the contract: the embedded one, and a real Consul where there is one."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import time
import uuid
from dataclasses import dataclass

import pytest
from scripted_store import Scripted
from store_later import Later

from yurt.kv import Store
from yurt.kv.server import EmbeddedStore
from yurt.kv.wire import Connection

TOKEN = "3b1e6cf4-8a77-4f0c-9d0e-5f7b2f3f9a11"


@dataclass(frozen=True)
class Served:
    """A store that is up."""

    kind: str
    address: str
    token: str


def free_ports(count: int) -> list[int]:
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def find_consul() -> str | None:
    return os.environ.get("YURT_CONSUL") or shutil.which("consul")


@pytest.fixture(scope="session")
def consul(tmp_path_factory):
    """A real Consul of this test run's own, in memory, on free ports, with access control on."""
    binary = find_consul()
    if binary is None:
        pytest.skip("no consul on PATH (nor named by YURT_CONSUL)")
    folder = tmp_path_factory.mktemp("consul")
    http, server, lan, wan = free_ports(4)
    (folder / "acl.hcl").write_text(
        f'acl {{ enabled = true  default_policy = "deny"  tokens {{ master = "{TOKEN}" }} }}\nlog_level = "err"\n'
    )
    command = [binary, "agent", "-dev", "-bind=127.0.0.1", "-client=127.0.0.1", f"-config-dir={folder}"]
    command += [f"-http-port={http}", f"-server-port={server}", f"-serf-lan-port={lan}", f"-serf-wan-port={wan}"]
    command += ["-dns-port=-1", "-grpc-port=-1", "-https-port=-1"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log)
    served = Served("consul", f"http://127.0.0.1:{http}", TOKEN)
    try:
        end = time.monotonic() + 30
        while True:
            try:
                with Store(served.address, TOKEN, timeout_s=2) as store:
                    store.session_destroy(store.session_create(10, name="up"))
                    break
            except Exception as error:
                if process.poll() is not None or time.monotonic() > end:
                    pytest.fail(f"consul did not come up: {error}\n{(folder / 'log').read_text()[-2000:]}")
                time.sleep(0.05)
        yield served
    finally:
        process.kill()
        process.wait()


@pytest.fixture(scope="session")
def embedded():
    with EmbeddedStore(token=TOKEN) as store:
        yield Served("embedded", store.address, TOKEN)


@pytest.fixture(params=["embedded", "consul"])
def served(request):
    """Each store of the contract in turn."""
    return request.getfixturevalue(request.param)


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
