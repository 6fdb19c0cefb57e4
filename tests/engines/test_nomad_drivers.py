"""TensorFlow on a real Nomad by each of its drivers: the same numbers as on this machine."""

from __future__ import annotations

import os
import re
import sys
import sysconfig
from contextlib import ExitStack

import pytest

from tests.support import docker_image
from tests.support.cluster import SYSTEM_PYTHON, environment_for_exec, folder_on, need_cluster, raised
from tests.support.docker_daemon import some_daemon
from tests.support.runs import Folder

pytestmark = pytest.mark.tensorflow

NOBODY = 65534
TRAINS = """
import os, sys
import numpy as np
import tensorflow as tf
tf.keras.utils.set_random_seed(7)
strategy = tf.distribute.MultiWorkerMirroredStrategy()
x = np.linspace(-1, 1, 256, dtype="float32").reshape(64, 4)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
data = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(8)
loss = model.fit(data, epochs=2, verbose=0).history["loss"][-1]
model.save(os.environ["YURT_MODEL_DIR"] + "/model.keras")
print("workers", strategy.num_replicas_in_sync, "user", os.getuid(), "in", sys.prefix, "loss", loss, flush=True)
"""


@pytest.fixture(scope="module", autouse=True)
def _cluster_can_be():
    need_cluster()


@pytest.fixture(scope="module")
def daemon():
    """A Docker daemon for the nodes, or why there is none."""
    with ExitStack() as stack:
        try:
            found = stack.enter_context(some_daemon())
        except pytest.skip.Exception as reason:
            found = str(reason)
        yield found


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    return environment_for_exec(tmp_path_factory.mktemp("python") / "tf", docker_image.PACKAGES)


@pytest.fixture(scope="module")
def losses_here(tmp_path_factory):
    """What both workers end with on this machine."""
    folder = Folder(tmp_path_factory.mktemp("here"))
    job = {"name": "drive", "command": "python3 train.py", "roles": {"worker": 2}, "restart": "never"}
    done = folder.yurt("run", folder.write(job, train=TRAINS), timeout_s=240)
    assert done.returncode == 0, done.stdout + done.stderr
    return [float(each) for each in re.findall(r"worker/[01] \| workers 2 .* loss (\S+)", done.stdout)]


@pytest.fixture(scope="module")
def cluster(daemon, environment):
    offered = {"packages": sysconfig.get_paths()["purelib"]}
    if environment is not None:
        offered["tf"] = str(environment)
    with pytest.MonkeyPatch.context() as patch:
        if not isinstance(daemon, str) and daemon.address:
            patch.setenv("DOCKER_HOST", daemon.address)  # Nomad's driver heeds it too
        yield from raised(2, volumes=offered)


@pytest.fixture
def folder(cluster, tmp_path):
    yield from folder_on(cluster, tmp_path)


def read_only(**paths):
    """The option `volumes`."""
    return {name: {"source": name, "path": path, "read_only": True} for name, path in paths.items()}


@pytest.mark.parametrize("driver", ["raw_exec", "exec", "docker"])
def test_two_workers_train_as_on_this_machine(driver, daemon, environment, folder, losses_here):
    job = {"name": "drive", "command": "python3 train.py", "roles": {"worker": 2}, "restart": "never"}
    user, place = os.getuid(), sys.prefix
    if driver == "raw_exec":
        nomad = {"python": sys.executable}
    elif driver == "exec":
        if environment is None:
            pytest.skip(f"{SYSTEM_PYTHON} is not there or not of this version: exec has no other")
        user, place = NOBODY, "/opt/tf"
        nomad = {"python": "/opt/tf/bin/python", "volumes": read_only(tf=place, packages=docker_image.PACKAGES)}
    else:
        if isinstance(daemon, str):
            pytest.skip(daemon)
        user, place = 0, "/usr/local"
        job["image"] = docker_image.image(daemon.environment)
        nomad = {"volumes": read_only(packages=docker_image.PACKAGES)}
    file = folder.write(job | {"engines": {"nomad": {"driver": driver, **nomad}}}, train=TRAINS)
    there = folder.yurt("run", file, "--on", "nomad", timeout_s=240)
    assert there.returncode == 0, there.stdout + there.stderr
    ends = re.findall(r"worker/[01] \| workers 2 user (\d+) in (\S+) loss (\S+)", there.stdout)
    assert [each[:2] for each in ends] == [(str(user), place)] * 2, there.stdout
    assert [float(each[2]) for each in ends] == pytest.approx(losses_here, rel=1e-6)
