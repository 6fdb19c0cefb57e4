"""On a real Nomad: the port that a task gets, a Consul that speaks TLS alone, and what nodes lack."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cluster import client, raised
from tests.support.runs import Folder, wait_until
from yurt.engines.nomad import versions
from yurt.errors import StoreError
from yurt.kv import Store, TlsParams

SHOWS = """
import os
own = os.environ["TF_CONFIG"]
print("cluster", own, flush=True)
print("port", os.environ["NOMAD_PORT_tf"], flush=True)
"""


@pytest.fixture(scope="module")
def cluster():
    yield from raised(2)


def job_for(folder, nomad=(), **changes):
    job = {
        "name": "shows",
        "command": "python train.py",
        "strategy": "multi-worker-mirrored",
        "roles": {"worker": 2},
        "keras": "off",
        "success": "all-workers",
        "start_deadline": 60,
        "grace": 1,
        "engines": {"nomad": {"python": sys.executable, **dict(nomad)}},
        **changes,
    }
    return folder.write(job, train=SHOWS)


def addresses_and_ports(done):
    lines = {}
    for line in done.stdout.splitlines():
        task, _, said = line.partition(" | ")
        kind, _, value = said.partition(" ")
        if kind in ("cluster", "port"):
            lines[task.split()[-1], kind] = value
    cluster = json.loads(lines["worker/0", "cluster"])["cluster"]["worker"]
    return cluster, [int(lines[f"worker/{index}", "port"]) for index in range(2)]


def test_each_task_is_at_the_port_that_nomad_gave_it(cluster, tmp_path):
    folder = Folder(tmp_path, dict(cluster.environment))
    done = folder.yurt("run", job_for(folder), "--on", "nomad")
    assert done.returncode == 0, done.stdout + done.stderr
    addresses, ports = addresses_and_ports(done)
    assert addresses == [f"127.0.0.1:{port}" for port in ports]
    assert all(20000 <= port < 32000 for port in ports), "of Nomad's dynamic range"


def test_a_bridge_network_that_the_nodes_lack_is_refused_with_the_reason(cluster, tmp_path):
    if any(Path("/opt/cni/bin").glob("bridge")):
        pytest.skip("this machine has CNI plugins")
    folder = Folder(tmp_path, dict(cluster.environment))
    options = {"network": "bridge", "driver": "exec", "consul": "http://10.0.0.1:8500"}
    done = folder.yurt("run", job_for(folder, options), "--on", "nomad")
    assert done.returncode == 6, done.stdout + done.stderr
    wanted = 'pre-run hook "network" failed'  # Nomad 1.6.1 takes a node whose kernel has bridges for one that can
    if not versions.knows(client(cluster).version(), versions.BRIDGE_EXEC):
        wanted = "network: bridge with the driver exec needs Nomad 1.3.2 or later"
    assert wanted in done.stdout + done.stderr
    assert [job for job in client(cluster).jobs() if "shows" in job["ID"] and job["Status"] != "dead"] == []


def test_gpus_that_no_node_has_are_refused_with_the_reason(cluster, tmp_path):
    folder = Folder(tmp_path, dict(cluster.environment))
    done = folder.yurt("run", job_for(folder, roles={"worker": {"replicas": 2, "gpus": 1}}), "--on", "nomad")
    assert done.returncode == 6, done.stdout + done.stderr
    assert "each task of worker asks for 1 of nvidia/gpu, and none of the 2 nodes has one" in done.stdout + done.stderr


@pytest.fixture
def consul_tls(cluster, tmp_path):
    """A Consul beside the cluster's that answers over TLS alone: its address and its authority's file."""
    if shutil.which("openssl") is None:
        pytest.skip("no openssl on PATH")
    folder = tmp_path / "consul"
    folder.mkdir()
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
         "-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=server.dc1.consul",
         "-addext", "subjectAltName=DNS:server.dc1.consul"],
        cwd=folder, check=True, capture_output=True,
    )  # fmt: skip
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(4)]
    https, server, lan, wan = (each.getsockname()[1] for each in sockets)
    for each in sockets:
        each.close()
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["consul", "agent", "-dev", "-bind=127.0.0.1", "-client=127.0.0.1", "-http-port=-1", "-dns-port=-1",
             "-grpc-port=-1", f"-https-port={https}", f"-server-port={server}", f"-serf-lan-port={lan}",
             f"-serf-wan-port={wan}", "-hcl", f'cert_file = "{folder}/cert.pem"', "-hcl", f'key_file = "{folder}/key.pem"'],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
        )  # fmt: skip
    address, authority = f"https://127.0.0.1:{https}", str(folder / "cert.pem")
    try:
        with Store(address, tls_params=TlsParams(ca_file=authority, server_name="server.dc1.consul")) as store:

            def up() -> bool:
                assert process.poll() is None, (folder / "log").read_text()
                try:
                    return bool(store.leader())
                except StoreError:
                    return False

            wait_until(up, 30, "Consul")
        yield address, authority
    finally:
        process.terminate()
        process.wait()


def test_tasks_speak_to_a_consul_over_tls(cluster, consul_tls, tmp_path):
    address, authority = consul_tls
    environment = {
        "NOMAD_ADDR": cluster.nomad,
        "CONSUL_HTTP_ADDR": address,
        "CONSUL_CACERT": authority,
        "CONSUL_TLS_SERVER_NAME": "server.dc1.consul",
    }
    folder = Folder(tmp_path, environment)
    tls = {"ca_file": authority, "server_name": "server.dc1.consul"}
    done = folder.yurt("run", job_for(folder, {"consul_tls": tls}), "--on", "nomad")
    assert done.returncode == 0, done.stdout + done.stderr
    done = folder.yurt("run", job_for(folder, {"consul_tls": {"ca_file": "/no/such.pem"}}), "--on", "nomad")
    assert done.returncode == 6, done.stdout + done.stderr
    assert "/no/such.pem" in done.stdout
