"""TensorFlow on a real Nomad by each of its drivers: the same numbers as on this machine."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from contextlib import ExitStack

import pytest

from tests.support import docker_image
from tests.support.cluster import folder_on, raised
from tests.support.docker_daemon import some_daemon

pytestmark = pytest.mark.tensorflow

#: What the driver exec's chroot has.
SYSTEM_PYTHON = "/usr/bin/python3"
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
    """A Python environment of the system's Python, whose packages are ours as tasks see them; None without one."""
    version = [SYSTEM_PYTHON, "-c", "import sys; sys.exit(f'{sys.version_info[:2]}')"]
    if subprocess.run(version, capture_output=True, text=True, check=False).stderr.strip() != f"{sys.version_info[:2]}":
        return None
    folder = tmp_path_factory.mktemp("python") / "tf"
    subprocess.run([SYSTEM_PYTHON, "-m", "venv", "--without-pip", folder], check=True)
    [packages] = folder.glob("lib/python3*/site-packages")
    (packages / "ours.pth").write_text(docker_image.PACKAGES)
    return folder


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
def test_two_workers_train_as_on_this_machine(driver, daemon, environment, folder):
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
    here = folder.yurt("run", file, timeout_s=240)
    assert here.returncode == 0, here.stdout + here.stderr
    losses = re.findall(r"worker/[01] \| workers 2 .* loss (\S+)", here.stdout)
    assert [float(each[2]) for each in ends] == pytest.approx([float(each) for each in losses], rel=1e-6)
