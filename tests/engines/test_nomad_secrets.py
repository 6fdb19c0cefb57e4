"""Secrets on a real Nomad, from a scripted Vault: they reach the task, and are in no job."""

from __future__ import annotations

import json
import os
import shutil
import sys

import pytest

from tests.support.cluster import client
from tests.support.runs import Folder
from tests.support.scripted_vault import ROOT, TASKS_TOKEN, ScriptedVault
from yurt.cluster.dev import DevCluster

NASTY = "a 'b' \"c\" ${HOME} $$ {{ env }} #x \\n\nsecond ü <&>"
SHOWS = """
import json, os
names = ("ONE_KEY", "TWO_TOKEN", "VAULT_TOKEN")
open(os.environ["FOUND"], "w").write(json.dumps([os.environ.get(name) for name in names]))
"""


class ClusterWithVault(DevCluster):
    """Its agents know where Vault is."""

    vault = ""

    def _common(self, name, http, rpc, serf):
        settings = {"enabled": True, "address": self.vault, **({"token": ROOT} if name == "server" else {})}
        return {**super()._common(name, http, rpc, serf), "vault": settings}


@pytest.fixture(scope="module")
def vault():
    made = ScriptedVault(one={"old": {"a-b": NASTY}}, two={"new": {"key": "value", "other": "x"}})
    yield made
    made.close()


@pytest.fixture(scope="module")
def cluster(vault):
    missing = [name for name in ("nomad", "consul") if shutil.which(name) is None]
    if missing or os.geteuid() != 0:
        pytest.skip("no Nomad and Consul on PATH, or not root")
    made = ClusterWithVault(clients=1)
    made.vault = vault.address
    with made:
        yield made


def run(cluster, tmp_path, secrets, start_deadline=60):
    folder = Folder(tmp_path, dict(cluster.environment))
    options = {"python": sys.executable, "vault": {"policies": ["training"]}, "secrets": secrets}
    job = {
        "name": "secret", "command": "python train.py", "strategy": "none", "roles": {"worker": 1},
        "start_deadline": start_deadline, "env": {"FOUND": str(tmp_path / "found")}, "engines": {"nomad": options},
    }  # fmt: skip
    return folder.yurt("run", folder.write(job, train=SHOWS), "--on", "nomad")


def test_secrets_of_both_versions_of_the_store_reach_the_task_and_no_job(cluster, vault, tmp_path):
    secrets = {"ONE_KEY": {"vault": "kv/old", "key": "a-b"}, "TWO_TOKEN": {"vault": "secret/data/new", "key": "key"}}
    done = run(cluster, tmp_path, secrets)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads((tmp_path / "found").read_text()) == [NASTY, "value", None]
    assert ["training"] in vault.asked
    nomad = client(cluster)
    jobs = json.dumps([nomad.job(each["ID"]) for each in nomad.jobs()])
    assert not [text for text in (json.dumps(NASTY)[1:-1], TASKS_TOKEN, '"value"') if text in jobs]


def test_a_secret_without_a_value_ends_the_run_with_its_name(cluster, tmp_path):
    done = run(cluster, tmp_path, {"ONE_KEY": {"vault": "secret/data/new", "key": "typo"}})
    assert done.returncode == 1, done.stdout + done.stderr
    assert "worker/0 could not start: no value was found for ONE_KEY" in done.stdout


def test_a_path_that_vault_does_not_have_is_named(cluster, tmp_path):
    done = run(cluster, tmp_path, {"ONE_KEY": {"vault": "kv/nowhere", "key": "k"}}, start_deadline=5)
    assert done.returncode == 3, done.stdout + done.stderr
    assert "hint: worker/0: Missing: vault.read(kv/nowhere)" in done.stdout
