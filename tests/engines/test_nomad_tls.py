"""On a real Nomad and a real Consul that speak TLS alone, and ask everybody for a certificate."""

from __future__ import annotations

import sys

import pytest

from tests.support.certificates import Authority
from tests.support.cluster import need_cluster
from tests.support.runs import Folder
from tests.support.tls_cluster import TlsCluster

TRAINS = """
import os, time
print("here", os.environ["YURT_INDEX"], flush=True)
while not os.path.exists(os.environ["ENOUGH"]):
    time.sleep(0.05)
with open(os.environ["YURT_MODEL_DIR"] + "/model.txt", "w") as file:
    file.write("weights")
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    need_cluster()
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    with TlsCluster(clients=2, authority=authority, own=authority.certificate("own")) as cluster:
        yield cluster


@pytest.fixture
def folder(cluster, tmp_path):
    place = Folder(tmp_path, dict(cluster.environment))
    yield place
    (tmp_path / "enough").touch()
    for run_id in place.run_ids():
        place.yurt("stop", "--now", run_id)


def write(folder, cluster):
    own = {"ca_file": cluster.authority.file, "cert_file": cluster.own.cert, "key_file": cluster.own.key}
    tls = {"server_name": "server.dc1.consul", **{name: str(path) for name, path in own.items()}}
    job = {
        "name": "trains",
        "command": "python train.py",
        "roles": {"worker": 2},
        "env": {"ENOUGH": str(folder.path / "enough")},
        "start_deadline": 60,
        "grace": 1,
        "engines": {"nomad": {"python": sys.executable, "consul_tls": tls}},
    }
    return folder.write(job, train=TRAINS)


def told(done, code=0):
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def test_a_run_in_the_background_is_seen_and_stopped(folder, cluster, tmp_path):
    authority = cluster.authority.file.parent
    relative = {
        name: value.removeprefix(f"{authority}/") for name, value in folder.environment.items()
    }  # as a person has them who stands beside the files
    here = Folder(authority, {**relative, "YURT_HOME": str(folder.home)})
    run_id = told(here.yurt("run", "-d", write(folder, cluster), "--on", "nomad")).split()[2]
    assert "here 1" in wait_for_logs(folder, run_id)
    assert f"{run_id} is running" in told(folder.yurt("status", run_id))
    assert run_id in told(folder.yurt("ls", "--on", "nomad"))
    assert f"{run_id} was stopped by `yurt stop`" in told(folder.yurt("stop", run_id))


def wait_for_logs(folder, run_id):
    from tests.support.runs import wait_until

    return wait_until(lambda: "here 1" in (text := told(folder.yurt("logs", run_id))) and text, 60, "its lines")


def test_another_machine_stops_it_and_a_model_is_fetched(folder, cluster, tmp_path):
    other = Folder(tmp_path / "other", dict(cluster.environment))
    other.path.mkdir()
    run = folder.start(write(folder, cluster), "--on", "nomad")
    run.wait_for_line("worker/0", "here")
    (tmp_path / "enough").touch()
    assert run.wait() == 0, run.output
    assert "here 1" in told(other.yurt("logs", "--on", "nomad", run.run_id))
    told(other.yurt("publish", "--on", "nomad", run.run_id, "--to", "models"))
    assert (other.path / "models" / run.run_id / "model.txt").read_text() == "weights"
    (tmp_path / "enough").unlink()
    run = folder.start(write(folder, cluster), "--on", "nomad")
    run.wait_for_line("worker/0", "here")
    assert "was stopped by `yurt stop`" in told(other.yurt("stop", "--now", "--on", "nomad", run.run_id))
    assert run.wait() == 4


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"NOMAD_CACERT": ""}, "the certificate of Nomad at {nomad} is not trusted"),
        ({"NOMAD_TLS_SERVER_NAME": ""}, "the certificate of Nomad at {nomad} is not trusted"),
        ({"NOMAD_CLIENT_CERT": ""}, "it may ask for a certificate of ours: NOMAD_CLIENT_CERT and its key"),
        ({"NOMAD_ADDR": "http://"}, "speaks https"),
        ({"NOMAD_CACERT": "/no/such.pem"}, "the certificates for Nomad cannot be used"),
        ({"CONSUL_CACERT": ""}, "name the authority of its certificate: CONSUL_CACERT"),
        ({"CONSUL_CLIENT_CERT": ""}, "it may ask for a certificate of ours: CONSUL_CLIENT_CERT and CONSUL_CLIENT_KEY"),
        ({"CONSUL_HTTP_SSL": ""}, "it speaks https: set CONSUL_HTTP_SSL=true"),
    ],
)
def test_what_is_wrong_with_the_certificates_is_said(folder, cluster, changes, said):
    if "NOMAD_ADDR" in changes:
        changes = {"NOMAD_ADDR": cluster.nomad}
    folder.environment = {**cluster.environment, **changes}
    done = folder.yurt("run", write(folder, cluster), "--on", "nomad")
    assert done.returncode in (2, 6), done.stdout + done.stderr
    assert said.format(nomad=cluster.environment["NOMAD_ADDR"]) in done.stderr


def test_a_certificate_for_localhost_needs_no_other_name(folder, cluster):
    port = cluster.nomad.rpartition(":")[2]
    folder.environment = {
        **cluster.environment,
        "NOMAD_ADDR": f"https://localhost:{port}",
        "NOMAD_TLS_SERVER_NAME": "",
    }
    (folder.path / "enough").touch()
    assert "succeeded" in told(folder.yurt("run", write(folder, cluster), "--on", "nomad"))
