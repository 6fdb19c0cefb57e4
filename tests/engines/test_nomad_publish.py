"""On a real Nomad: models that nobody published are fetched from their nodes, while Nomad keeps them."""

from __future__ import annotations

import http.client
import json
import sys
from urllib.parse import urlsplit

import pytest

from tests.support.cluster import client, folder_on, raised
from tests.support.runs import Folder, wait_until

SAVES = """
import os
place = os.environ["YURT_MODEL_DIR"]
os.makedirs(f"{place}/variables/empty", exist_ok=True)
with open(f"{place}/saved_model.pb", "wb") as file:
    file.write(bytes(range(256)) * 12_345)
open(f"{place}/variables/none", "wb").close()
with open(f"{place}/variables/a {{}}.txt", "w") as file:
    file.write("weights")
"""
WHOLE = {"saved_model.pb": bytes(range(256)) * 12_345, "variables/none": b"", "variables/a {}.txt": b"weights"}


@pytest.fixture(scope="module")
def cluster():
    yield from raised(1)


@pytest.fixture
def folder(cluster, tmp_path):
    yield from folder_on(cluster, tmp_path)


def write(folder, **changes):
    job = {
        "name": "saves",
        "command": "python train.py",
        "strategy": "none",
        "roles": {"worker": 1},
        "start_deadline": 90,
        "grace": 1,
        "engines": {"nomad": {"python": sys.executable}},
        **changes,
    }
    return folder.write(job, train=SAVES)


def published(place):
    return {
        str(file.relative_to(place)): file.read_bytes()
        for file in place.rglob("*")
        if file.is_file() and file.name != "manifest.json"
    }


def test_a_model_without_an_output_is_fetched_and_published(cluster, folder, tmp_path):
    done = folder.yurt("run", write(folder), "--on", "nomad")
    assert done.returncode == 0, done.stdout + done.stderr
    [run_id] = folder.run_ids()
    assert "model: left on node-1, for as long as nomad keeps it there" in done.stdout
    assert f"yurt publish {run_id} --to FOLDER_OR_URL" in done.stdout
    done = folder.yurt("publish", run_id, "--to", "models")
    assert done.returncode == 0, done.stdout + done.stderr
    assert published(tmp_path / "models" / run_id) == WHOLE
    assert published(folder.home / "runs" / run_id / "tasks" / "worker-0" / "model") == WHOLE, "it is here as well now"
    assert f"model     ./models/{run_id}" in folder.yurt("status", run_id).stdout


def test_a_publish_that_failed_is_done_from_any_machine(cluster, folder, tmp_path):
    blocked = tmp_path / "blocked"
    blocked.write_text("no folder")
    done = folder.yurt("run", write(folder, output=f"file://{blocked}/models", saves_to="out"), "--on", "nomad")
    assert done.returncode == 5, done.stdout + done.stderr
    [run_id] = folder.run_ids()
    assert f"to fetch and publish it: yurt publish {run_id}\n" in done.stdout
    other = Folder(tmp_path / "other", dict(cluster.environment))
    other.path.mkdir()
    assert f"yurt publish --on nomad {run_id}" in other.yurt("wait", "--on", "nomad", run_id).stdout
    done = other.yurt("publish", "--on", "nomad", run_id, "--to", "models")
    assert done.returncode == 0, done.stdout + done.stderr
    assert published(other.path / "models" / run_id) == WHOLE
    blocked.unlink()
    done = folder.yurt("publish", run_id)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "succeeded" in folder.yurt("status", run_id).stdout
    third = Folder(tmp_path / "third", dict(cluster.environment))
    third.path.mkdir()
    listed = json.loads(third.yurt("ls", "--on", "nomad", "--json").stdout)
    assert [each["outcome"] for each in listed if each["run"] == run_id] == ["succeeded"], "others see it too"


def test_a_model_that_is_gone_is_said_to_be(cluster, folder):
    done = folder.yurt("run", write(folder), "--on", "nomad")
    assert done.returncode == 0, done.stdout + done.stderr
    [run_id] = folder.run_ids()
    client(cluster).deregister(run_id, purge=True)
    nomad = http.client.HTTPConnection(urlsplit(cluster.nomad).netloc)

    def collected():
        nomad.request("PUT", "/v1/system/gc")
        nomad.getresponse().read()
        return client(cluster).allocations(run_id)[0] == []

    wait_until(collected, 30, "the collection")
    done = folder.yurt("publish", run_id, "--to", "models")
    assert done.returncode == 6, done.stdout + done.stderr
    assert (
        f"Nomad keeps nothing of {run_id} any more, and its model went with the allocation of worker/0" in done.stderr
    )


def test_a_model_on_a_node_that_is_away_is_said_to_be_there(cluster, folder):
    done = folder.yurt("run", write(folder), "--on", "nomad")
    assert done.returncode == 0, done.stdout + done.stderr
    [run_id] = folder.run_ids()
    [allocation] = client(cluster).allocations(run_id)[0]
    cluster.kill("node-1")
    try:
        done = folder.yurt("publish", run_id, "--to", "models")
    finally:
        cluster.start_client("node-1")
        wait_until(lambda: cluster.ready() == 1, 60, "the return of the node")
    assert done.returncode == 6, done.stdout + done.stderr
    where = (
        f"the model is on node-1, in agent/local/model of the allocation {allocation['ID'][:8]}, and cannot be fetched"
    )
    assert where in done.stderr
    assert not (folder.path / "models").exists()

    def fetched():  # the servers find the way to the node a moment after they call it ready
        again = folder.yurt("publish", run_id, "--to", "models", "--json")
        return again.returncode == 0 and json.loads(again.stdout)

    assert wait_until(fetched, 30, "the model")["published"]["files"] == 3
