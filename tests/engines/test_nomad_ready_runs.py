"""Runs on a real Nomad whose nodes make something ready first: an environment, files from a bucket or from git."""

from __future__ import annotations

import json
import os
import signal
import sys

import pytest

from tests.engines.test_nomad_node import REQUIREMENTS, git, push, wheel
from tests.support.cluster import folder_on, raised
from tests.support.flaky_s3 import MotoS3, environment
from tests.support.runs import wait_until

SAYS = """
import shutil, sys, tiny_weather
print("says", tiny_weather.SAYS, shutil.which("tiny"), flush=True)
"""
SIZE = """
import os
print("bytes", os.path.getsize("data.bin"), "AWS_SECRET_ACCESS_KEY" in os.environ, flush=True)
"""
WAITS = """
import os, time
print("pid", os.getpid(), flush=True)
while not os.path.exists(os.environ["ENOUGH"]):
    time.sleep(0.05)
print("enough", flush=True)
"""


@pytest.fixture(scope="module")
def cluster():
    yield from raised(2)


@pytest.fixture
def folder(cluster, tmp_path):
    yield from folder_on(cluster, tmp_path)


def write(folder, script, *, nomad, **changes):
    job = {
        "name": "ready", "command": "python train.py", "roles": {"worker": 2}, "start_deadline": 90,
        "grace": 1, "restart": "on-failure", "engines": {"nomad": {"python": sys.executable, **nomad}}, **changes,
    }  # fmt: skip
    return folder.write(job, train=script)


def test_tasks_run_in_the_environment_that_the_job_describes(folder):
    options = {"requirements": "requirements.txt", "cache_folder": f"{folder.path}/cache"}
    job = write(folder, SAYS, nomad=options)
    wheel(job.parent / "wheels")
    (job.parent / "requirements.txt").write_text(REQUIREMENTS)
    done = folder.yurt("run", job, "--on", "nomad")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(f"says one {folder.path}/cache/environments-") == 2
    assert done.stdout.count("the Python environment is ready after") == 1, "the nodes are on one machine: once"
    again = folder.yurt("run", job, "--on", "nomad")
    assert again.returncode == 0, again.stdout + again.stderr
    assert "is ready after" not in again.stdout


def test_an_environment_that_cannot_be_made_ends_the_run_with_what_pip_said(folder):
    options = {"requirements": "requirements.txt", "cache_folder": f"{folder.path}/cache"}
    job = write(folder, SAYS, nomad=options, roles={"worker": 1})
    (job.parent / "requirements.txt").write_text("--no-index\nno-such-package==9\n")
    done = folder.yurt("run", job, "--on", "nomad")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "could not start: what requirements.txt asks for could not be installed; pip said: " in done.stdout
    assert "No matching distribution found for no-such-package==9" in done.stdout
    [run_id] = folder.run_ids()
    state = json.loads((folder.home / "runs" / run_id / "state.json").read_text())["state"]
    assert state["generation"] == 0, "it was not tried again"


@pytest.fixture
def bucket(folder, monkeypatch):
    with MotoS3() as moto:
        moto.make_bucket("files")
        folder.environment = {**folder.environment, **environment(moto.url)}
        yield moto


def test_files_over_the_limit_go_through_a_bucket_until_the_run_is_over(folder, bucket):
    job = write(folder, SIZE, nomad={"files_through": "s3://files/large"}, grace=1)
    (job.parent / "data.bin").write_bytes(os.urandom(5 << 20))
    done = folder.yurt("run", job, "--on", "nomad")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(f"bytes {5 << 20} False") == 2, "no credentials came with them"
    assert bucket.objects("files") == {}


def test_who_takes_a_run_up_again_takes_its_files_out_of_the_bucket(folder, bucket):
    job = write(folder, WAITS, nomad={"files_through": "s3://files"}, env={"ENOUGH": f"{folder.path}/enough"})
    (job.parent / "data.bin").write_bytes(os.urandom(5 << 20))
    run = folder.start(job, "--on", "nomad")
    for task in ("worker/0", "worker/1"):
        wait_until(lambda task=task: "pid " in run.log(task), 60, "the start")
    assert len(bucket.objects("files")) == 1
    os.kill(run.process.pid, signal.SIGKILL)
    run.wait()
    (folder.path / "enough").touch()
    found = folder.yurt("wait", run.run_id)
    assert found.returncode == 0, found.stdout + found.stderr
    assert bucket.objects("files") == {}


def test_a_job_that_is_refused_leaves_nothing_in_the_bucket(folder, bucket):
    nowhere = {"constraints": [{"attribute": "${node.class}", "value": "x"}]}
    job = write(folder, SIZE, nomad={"files_through": "s3://files", **nowhere})
    (job.parent / "data.bin").write_bytes(os.urandom(5 << 20))
    done = folder.yurt("run", job, "--on", "nomad")
    assert done.returncode == 6, done.stdout + done.stderr
    assert bucket.objects("files") == {}


def test_files_come_from_a_git_commit(folder):
    git(folder.path, "init", "--bare", "remote.git")
    git(folder.path, "clone", "remote.git", "job")
    job = write(folder, "print('from git', __file__)", nomad={"git": {"url": (folder.path / "remote.git").as_uri()}})
    git(folder.path / "remote.git", "symbolic-ref", "HEAD", "refs/heads/main")
    push(folder.path / "job")
    done = folder.yurt("run", job, "--on", "nomad")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("from git ") == 2
    (job.parent / "train.py").write_text("print('changed')")
    refused = folder.yurt("run", job, "--on", "nomad")
    assert refused.returncode == 2, refused.stdout + refused.stderr
    assert "train.py of the job's folder is not so at HEAD" in refused.stderr + refused.stdout
