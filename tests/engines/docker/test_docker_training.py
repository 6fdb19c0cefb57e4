"""TensorFlow in containers trains as on this machine."""

from __future__ import annotations

import re

import pytest

from tests.support.docker_image import VOLUME
from tests.support.scripts import COORDINATOR, MULTI_WORKER

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def training(job):
    """A job that finds this environment's packages."""

    def make(**changes):
        return job(engines={"docker": {"volumes": [VOLUME]}}, output="./models", **changes)

    return make


def loss(text):
    return float(re.search(r"steps 20 loss (\S+)", text)[1])


def test_two_workers_train_and_publish_what_they_do_on_this_machine(folder, training):
    file = folder.write(training(roles={"worker": 2}), train=MULTI_WORKER)
    there = folder.yurt("run", file, "--on", "docker", timeout_s=240)
    assert there.returncode == 0, there.stdout + there.stderr
    assert (folder.path / "job/models/latest/model.keras").is_file()
    here = folder.yurt("run", file, timeout_s=240)
    assert here.returncode == 0, here.stdout + here.stderr
    assert loss(there.stdout) == pytest.approx(loss(here.stdout), rel=1e-5)


def test_a_killed_container_goes_on_from_the_last_checkpoint(daemon, folder, training):
    changes = {"env": {"EPOCHS": "5", "EPOCH_S": "0.5"}, "restart": "exit-code", "roles": {"worker": 2}}
    run = folder.start(folder.write(training(**changes), train=MULTI_WORKER), "--on", "docker")
    run.wait_for_line("worker/0", "Epoch 3/5", 240)
    daemon.docker("kill", "-s", "KILL", f"{run.run_id}-worker-1")
    assert run.wait(240) == 0, run.output
    assert run.state()["restarts"] == 1
    assert "Epoch 1/5" not in run.log("worker/0").rpartition("generation 1")[2]


def test_a_coordinator_with_standard_servers(folder, training):
    roles = {"chief": 1, "worker": {"standard_server": True}, "ps": {"standard_server": True}}
    done = folder.yurt("run", folder.write(training(roles=roles), train=COORDINATOR), "--on", "docker", timeout_s=240)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder.path / "job/models/latest/total.txt").read_text() == "20.0"
