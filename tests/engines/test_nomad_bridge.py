"""On a real Nomad: tasks in bridge networks of nodes that have addresses of their own."""

from __future__ import annotations

import re
import sysconfig

import pytest

from tests.support import docker_image
from tests.support.cluster import client, environment_for_exec, folder_on
from tests.support.machines import machines
from yurt.engines.nomad import versions

TALKS = """
import json, os, socket, threading, time
own = json.loads(os.environ["TF_CONFIG"])
index, tasks = own["task"]["index"], own["cluster"]["worker"]
print("told", *tasks, flush=True)
server = socket.create_server(("", int(tasks[index].rpartition(":")[2])))
def answer():
    while True:
        peer, _ = server.accept()
        peer.sendall(f"worker {index}".encode())
        peer.close()
threading.Thread(target=answer, daemon=True).start()
for place in tasks:
    host, _, port = place.rpartition(":")
    for _ in range(100):
        try:
            with socket.create_connection((host, int(port)), 5) as peer:
                print("at", place, "is", peer.recv(99).decode(), flush=True)
            break
        except ConnectionRefusedError:
            time.sleep(0.2)  # not yet
    else:
        raise SystemExit(f"nobody at {place}")
time.sleep(2)
"""
TRAINS = """
import numpy as np
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
x = np.random.rand(64, 4).astype("float32")
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(8), epochs=2, verbose=2)
print("workers", strategy.num_replicas_in_sync, flush=True)
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return environment_for_exec(tmp_path_factory.mktemp("python") / "tf", docker_image.PACKAGES)


@pytest.fixture(scope="module")
def cluster(environment):
    volumes = {"packages": sysconfig.get_paths()["purelib"]}
    if environment is not None:
        volumes["tf"] = str(environment)
    yield from machines(11, volumes=volumes)


@pytest.fixture
def folder(cluster, tmp_path):
    yield from folder_on(cluster, tmp_path)


def job_for(cluster, environment):
    """A job of two workers in bridge networks."""
    if not versions.knows(client(cluster).version(), versions.BRIDGE_EXEC):
        pytest.skip("this Nomad's exec has no loopback in a bridge network")
    if environment is None:
        pytest.skip("the system's Python is not there or not of this version: exec has no other")
    places = {"packages": docker_image.PACKAGES, "tf": "/opt/tf"}
    nomad = {
        "driver": "exec",
        "network": "bridge",
        "consul": cluster.environment["CONSUL_HTTP_ADDR"],
        "python": "/opt/tf/bin/python",
        "volumes": {name: {"source": name, "path": path, "read_only": True} for name, path in places.items()},
    }
    return {
        "name": "bridged",
        "command": "python3 train.py",
        "strategy": "multi-worker-mirrored",
        "roles": {"worker": 2},
        "success": "all-workers",
        "restart": "never",
        "start_deadline": 90,
        "grace": 1,
        "engines": {"nomad": nomad},
    }


def test_tasks_reach_each_other_and_themselves_by_the_addresses_they_are_told(cluster, folder, environment):
    job = {**job_for(cluster, environment), "keras": "off"}
    done = folder.yurt("run", folder.write(job, train=TALKS), "--on", "nomad")
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"(worker/.) \| at (\S+):\d+ is (\S+) (\d)\n", done.stdout)
    hosts = {(task, f"{role}/{index}"): host for task, host, role, index in found}
    assert hosts["worker/0", "worker/0"] == hosts["worker/1", "worker/1"] == "127.0.0.1"
    others = {hosts["worker/0", "worker/1"], hosts["worker/1", "worker/0"]}
    assert others == {cluster.address("node-1"), cluster.address("node-2")}


@pytest.mark.tensorflow
def test_tensorflow_trains_in_bridge_networks(cluster, folder, environment):
    job = job_for(cluster, environment)
    done = folder.yurt("run", folder.write(job, train=TRAINS), "--on", "nomad", timeout_s=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("| workers 2") == 2
