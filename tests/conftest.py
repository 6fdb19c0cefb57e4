"""For all rooms: both stores of the contract, the embedded one and a real Consul where there is one; and two lanes.

With pytest-xdist (`./dev test` asks for it) the tests run in two processes. What trains with TensorFlow is in one of them, one
after another; what starts clusters and daemons is in the other, with the rest.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import Any

import pytest

from yurt.kv import Store
from yurt.kv.server import EmbeddedStore

#: A real Kubernetes, raised when the first test asks for it.
pytest_plugins = ["tests.support.kubernetes_cluster"]

#: Rooms whose tests train: together they take about as long as all others.
TRAINING = ("examples", "failures", "training")

TOKEN = "3b1e6cf4-8a77-4f0c-9d0e-5f7b2f3f9a11"


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """pytest-xdist's own way of keeping tests together, by their rooms: its groups (3.8.0) do not hold with pytest 9.2."""
    from xdist.scheduler import LoadScopeScheduling

    class Lanes(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            return "training" if nodeid.split("/")[1] in TRAINING else "engines"

    return Lanes(config, log)


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
