"""What cannot be: each is one sentence, and nothing is left behind."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support import docker_image
from tests.support.runs import Folder, wait_until


def refused(folder, job, *, exit_code=6, environment=None, verb="run"):
    if environment is not None:
        folder = Folder(folder.path, environment)
    done = folder.yurt(verb, folder.write(job, train="print('hi')"), "--on", "docker")
    assert done.returncode == exit_code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr or done.stdout


@pytest.fixture
def plain(tmp_path):
    """Without any daemon."""
    return Folder(tmp_path, {"DOCKER_HOST": f"unix://{tmp_path}/none.sock"})


JOB = {"name": "dock", "command": "train.py", "image": "missing:1"}


@pytest.mark.parametrize("verb", ["run", "check"])
def test_no_daemon(plain, verb):
    told = refused(plain, JOB, verb=verb)
    assert told.startswith(f"yurt: no Docker daemon is on this machine: there is no {plain.path}/none.sock\n")
    assert "systemctl start docker" in told
    assert not plain.run_ids()


def test_a_daemon_of_another_machine(plain):
    told = refused(plain, JOB, environment={"DOCKER_HOST": "tcp://elsewhere:2375"})
    assert "the Docker daemon at tcp://elsewhere:2375 (DOCKER_HOST) is reached over the network" in told


@pytest.mark.parametrize("verb", ["run", "check", "render"])
def test_a_job_without_an_image(plain, verb):
    told = refused(plain, {"name": "dock", "command": "train.py"}, exit_code=2, verb=verb)
    assert told.startswith("yurt: the job dock names no image, and Docker needs one\n")


def test_render_needs_no_daemon_and_shows_the_folders_of_large_files(plain):
    file = plain.write(JOB, train="")
    (plain.path / "job/data").mkdir()
    (plain.path / "job/data/large.bin").write_bytes(b"x" * (2 << 20))
    done = plain.yurt("render", file, "--on", "docker")
    assert done.returncode == 0, done.stderr
    (agent,) = json.loads(done.stdout)["agents"]
    data = str(plain.path / "job/data")
    mount = {"Type": "bind", "Source": data, "Target": data, "ReadOnly": True}
    assert mount in agent["container"]["HostConfig"]["Mounts"]


def test_an_image_that_is_not_here(daemon, folder):
    told = refused(folder, JOB)
    assert told.startswith("yurt: the image missing:1 is not on this machine\n")
    assert "docker pull missing:1" in told
    assert "yurt image build" in told
    assert not folder.run_ids()


def test_gpus_that_nobody_has(daemon, folder, job):
    if Path("/proc/driver/nvidia").exists():
        pytest.skip("this machine has GPUs")
    told = refused(folder, job(roles={"worker": {"gpus": 1}}))
    assert "the Docker daemon cannot give GPUs to containers" in told
    assert not daemon.docker("ps", "-aq", "--filter", "label=yurt.run").split()


def test_a_folder_that_is_not_there(folder, job):
    told = refused(folder, job(engines={"docker": {"volumes": ["/no/such/folder:/data"]}}))
    assert "the Docker daemon refused" in told
    assert "/no/such/folder" in told


def test_a_store_that_would_listen_nowhere(daemon, folder, job):
    told = refused(folder, job(engines={"docker": {"store_host": "192.0.2.7"}}), exit_code=2)
    assert "(192.0.2.7), so its tasks cannot reach the store" in told
    assert not daemon.docker("network", "ls", "-q", "--filter", "label=yurt.run").split()


def test_options_that_make_no_sense(plain):
    told = refused(plain, {**JOB, "engines": {"docker": {"volumes": ["data:/data"], "netwrok": "host"}}}, exit_code=2)
    assert "must be a folder and where it is seen" in told
    assert "netwrok" in told


def test_an_image_without_python(daemon, folder, job):
    bare = docker_image.image(daemon.environment, python=None)
    told = refused(folder, job(image=bare))
    assert "the image has no Python (python3 or python) on its PATH" in told
    told = refused(folder, job(image=bare), verb="check", exit_code=2)
    assert told == "yurt: worker: the image has no Python (python3 or python) on its PATH\n"


def test_a_python_that_is_too_old(daemon, folder, job):
    old = old_python()
    told = refused(folder, job(image=docker_image.image(daemon.environment, python=old, as_name="python")))
    assert "is too old for Yurt's agent, which needs 3.9 or newer" in told


def old_python():
    places = [Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")]
    found = [file for place in places for file in sorted(place.glob("3.[678].*/bin/python3.[678]"))]
    if not found:
        pytest.skip("no Python older than 3.9 is here")
    return str(found[-1])


def test_a_firewall_between_the_containers_and_the_store(daemon, folder, job):
    if os.getuid() != 0 or shutil.which("iptables") is None:
        pytest.skip("needs root and iptables")
    daemon.docker("network", "create", "-o", "com.docker.network.bridge.name=yurt-test", "yurt-test")
    rule = ["INPUT", "-i", "yurt-test", "-p", "tcp", "-j", "DROP"]
    if subprocess.run(["iptables", "-I", *rule], check=False).returncode:
        pytest.skip("iptables does not work here")
    try:
        told = refused(folder, job(engines={"docker": {"network": "yurt-test"}}))
    finally:
        subprocess.run(["iptables", "-D", *rule], check=True)
        daemon.docker("network", "rm", "yurt-test")
    assert "cannot be reached from here (timed out): a firewall on the launcher's machine" in told


def test_a_python_of_39_is_new_enough(daemon, folder, job):
    found = sorted(Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions").glob("3.9.*/bin/python3.9"))
    if not found:
        pytest.skip("no Python 3.9 is here")
    own = docker_image.image(daemon.environment, python=str(found[-1]), as_name="python")
    file = folder.write(job(image=own), train="import sys; print('runs on', sys.version_info[:2])")
    done = folder.yurt("run", file, "--on", "docker")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "runs on (3, 9)" in done.stdout


def test_an_image_is_built_for_a_job_and_runs_it(daemon, folder, image):
    job = {"name": "dock", "command": "train.py"}
    file = folder.write(job, train="import sys; print('runs on', sys.version_info[:2])")
    told = folder.yurt("image", "build", file, "--base", image)
    assert told.returncode == 2
    assert "requirements.txt: No such file" in told.stderr
    (file.parent / "requirements.txt").write_text("# nothing but Python\n")
    told = folder.yurt("image", "build", file, "--base", image, "-q")
    assert told.returncode == 0, told.stderr
    name = told.stdout.strip()
    assert name.startswith("yurt-dock:")
    done = folder.yurt(
        "run", folder.write({**job, "image": name}, train=file.with_name("train.py").read_text()), "--on", "docker"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "runs on" in done.stdout
    assert "invalid tag 'A B'" in folder.yurt("image", "build", file, "--base", image, "-t", "A B").stderr
    (file.parent / "requirements.txt").write_text("no such requirement\n")
    told = folder.yurt("image", "build", file, "--base", image)
    assert told.returncode == 6
    assert "yurt: the image could not be built" in told.stderr


def test_a_daemon_that_is_started_again_while_a_run_goes_on(daemon, folder, job):
    """Its containers end with it; the launcher brings them back, which is one restart however many they are."""
    if daemon.process is None:
        pytest.skip("the daemon is not this test run's own")
    waits = 'import time\nprint("here", flush=True)\ntime.sleep(600)\n'
    run = folder.start(folder.write(job(restart="exit-code", roles={"worker": 3}), train=waits), "--on", "docker")
    for task in ("worker/0", "worker/1", "worker/2"):
        run.wait_for_line(task, "here")
    daemon.stop()
    daemon.start()
    wait_until(lambda: run.log("worker/2").count("here") == 2, 60, "the second start")
    assert run.state()["restarts"] == 1, run.output
    assert folder.yurt("stop", run.run_id).returncode == 0
    assert run.wait() == 4, run.output
    assert not daemon.containers(run.run_id, "-a")
