"""Runs on a real Nomad and Consul as other machines see them, and a Consul that comes late or goes away."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import free_ports
from tests.support.cluster import client, folder_on, raised
from tests.support.lasting_consul import LastingConsul
from tests.support.runs import YURT, Folder, wait_until
from yurt.kv import Store

TICKS = """
import json, os, time
print("hello of", os.environ["YURT_INDEX"], flush=True)
count = 0
while not os.path.exists(os.environ["ENOUGH"]):
    count += 1
    part = os.environ["YURT_PROGRESS_FILE"] + ".part"
    with open(part, "w") as file:
        json.dump({"epoch": 1, "epochs": 1, "step": count, "loss": 0.5}, file)
    os.replace(part, os.environ["YURT_PROGRESS_FILE"])
    time.sleep(0.2)
print("enough", flush=True)
"""


@pytest.fixture(scope="module")
def cluster():
    yield from raised(2)


@pytest.fixture
def folder(cluster, tmp_path):
    """The machine that submits."""
    yield from folder_on(cluster, tmp_path)


@pytest.fixture
def other(cluster, tmp_path):
    """Another machine: it sees the same cluster and has never heard of a run."""
    place = tmp_path / "other"
    place.mkdir()
    return Folder(place, dict(cluster.environment))


def write(folder, **changes):
    job = {
        "name": "ticks",
        "command": "python train.py",
        "roles": {"worker": 2},
        "env": {"ENOUGH": str(folder.path / "enough"), "MY_API_KEY": "hush-hush"},
        "start_deadline": 90,
        "grace": 1,
        "engines": {"nomad": {"python": sys.executable}},
        **changes,
    }
    return folder.write(job, train=TICKS)


def running(run):
    return wait_until(lambda: run.snapshot()["state"]["phase"] == "running" and run.log("worker/1"), 90, "the training")


def listed(folder) -> dict[str, dict]:
    done = folder.yurt("ls", "--on", "nomad", "--json")
    assert done.returncode == 0, done.stderr
    return {row["run"]: row for row in json.loads(done.stdout)}


def on(folder, verb, *arguments):
    done = folder.yurt(verb, "--on", "nomad", *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_another_machine_sees_a_run_live_and_how_it_ended(cluster, folder, other):
    run = folder.start(write(folder, output=f"file://{folder.path}/models"), "--on", "nomad")
    running(run)
    row = wait_until(lambda: (r := listed(other)[run.run_id])["progress"] and r, 30, "the first progress")
    assert (row["job"], row["phase"], row["engine"], row["tasks"], row["done"]) == ("ticks", "running", "nomad", 2, 0)
    assert row["progress"]["loss"] == 0.5
    assert f"{run.run_id} is running" in on(other, "status")
    assert "worker/1  running" in on(other, "status", run.run_id)
    assert "worker/1 | hello of 1\n" in on(other, "logs", run.run_id)
    assert "hello of 0" not in on(other, "logs", run.run_id[:8], "worker/1")
    since = other.yurt("logs", "--on", "nomad", run.run_id, "--since", "5m")
    assert (since.returncode, "does not tell when a line was printed" in since.stderr) == (2, True)
    assert other.yurt("status", run.run_id).returncode == 2, "without --on it is not known here"
    follow = subprocess.Popen(
        [*YURT, "logs", "--on", "nomad", "-f", run.run_id], env=other.env(), stdout=subprocess.PIPE, text=True
    )
    (folder.path / "enough").touch()
    shown, _ = follow.communicate(timeout=60)
    code = run.wait()
    assert shown.count("| enough\n") == 2, shown
    assert follow.returncode == code
    row = listed(other)[run.run_id]
    assert (row["outcome"] is not None, row["done"], row["exit_code"]) == (True, 2, code)
    page = json.loads(on(other, "status", run.run_id, "--json"))
    assert [task["state"] for task in page["tasks"]] == ["finished", "finished"]
    assert page["folder"] is None
    assert page["published"] == json.loads(folder.yurt("status", run.run_id, "--json").stdout)["published"]
    assert "| enough" in on(other, "logs", run.run_id), "Nomad has the allocations still"
    with Store(cluster.consul) as store:
        keys = store.keys(f"yurt/runs/{run.run_id}/")
        values = b"".join(each.value for each in store.list("yurt/"))
    assert [key.rpartition("/")[2] for key in keys] == ["end", "engine", "spec", "state"]
    assert b"hush-hush" not in values
    assert "0 runs of nomad removed" in on(other, "prune")
    assert f"would go  {run.run_id}" in on(other, "prune", "--all", "--dry-run")
    assert f"removed  {run.run_id}" in on(other, "prune", "--all")
    assert run.run_id not in listed(other)
    gone = other.yurt("status", "--on", "nomad", run.run_id)
    assert (gone.returncode, "knows of no run" in gone.stderr) == (2, True)


def test_another_machine_stops_a_run_that_nobody_serves(cluster, folder, other):
    run = folder.start(write(folder), "--on", "nomad")
    running(run)
    run.process.kill()
    run.wait()
    assert "stopped by `yurt stop`" in on(other, "stop", "--now", run.run_id)
    assert [job["ID"] for job in client(cluster).jobs() if job["Status"] != "dead"] == []
    row = listed(other)[run.run_id]
    assert (row["outcome"], row["exit_code"]) == ("cancelled", 4)
    assert "there was nothing to stop" in on(other, "stop", run.run_id)
    assert "cancelled" in folder.yurt("ls", "--on", "nomad").stdout
    told = folder.yurt("status", "--wait", run.run_id)
    assert "was stopped by `yurt stop`" in told.stdout, told.stdout + told.stderr
    assert "worker/1  stopped" in told.stdout
    run.assert_nothing_left()


def test_a_consul_that_comes_late_and_goes_away_in_training_hurts_nobody(folder, tmp_path):
    own = LastingConsul(tmp_path)
    folder.environment = {**folder.environment, "CONSUL_HTTP_ADDR": own.address}
    try:
        run_process = subprocess.Popen(
            [*YURT, "run", str(write(folder)), "--on", "nomad"],
            env=folder.env(),
            cwd=folder.path,
            stdout=(folder.path / "output.txt").open("wb"),
            stderr=subprocess.STDOUT,
        )
        output = folder.path / "output.txt"
        wait_until(lambda: f"waiting for Consul at {own.address}" in output.read_text(), 30, "the word on Consul")
        own.start()
        run_id = wait_until(folder.run_ids, 60, "the run")[0]
        log = folder.home / "runs" / run_id / "tasks" / "worker-1" / "log"
        wait_until(lambda: log.exists() and "hello" in log.read_text(), 90, "the training")
        own.kill()
        time.sleep(15)
        own.start()
        wait_until(lambda: "the key-value store is back after" in log.read_text(), 30, "the agent's word")
        (folder.path / "enough").touch()
        assert run_process.wait(60) == 0, output.read_text()
        assert log.read_text().count("hello") == 1, "the task went on"
        state = json.loads((folder.home / "runs" / run_id / "state.json").read_text())["state"]
        assert (state["generation"], state["restarts"]) == (0, 0)
    finally:
        for run_id in folder.run_ids():
            folder.yurt("stop", "--now", run_id)
        own.kill()


def test_a_person_need_not_wait_for_consul(folder):
    [port] = free_ports(1)
    folder.environment = {**folder.environment, "CONSUL_HTTP_ADDR": f"127.0.0.1:{port}"}
    output = folder.path / "output.txt"
    process = subprocess.Popen(
        [*YURT, "run", str(write(folder)), "--on", "nomad"],
        env=folder.env(), cwd=folder.path, stdout=output.open("wb"), stderr=subprocess.STDOUT,
    )  # fmt: skip
    wait_until(lambda: "waiting for Consul" in output.read_text(), 30, "the word on Consul")
    process.send_signal(signal.SIGINT)
    assert process.wait(20) == 4, output.read_text()
    assert "stopped by Ctrl-C while it waited for Consul" in output.read_text()
    assert list((folder.home / "runs").iterdir()) == [], "nothing is kept of it"
    background = subprocess.Popen(
        [*YURT, "run", "-d", str(write(folder)), "--on", "nomad"],
        env=folder.env(), cwd=folder.path, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert background.stderr
    line = background.stderr.readline()
    assert f"waiting for Consul at http://127.0.0.1:{port}, up to 10 s" in line, "before it gives up"
    background.send_signal(signal.SIGINT)
    said = background.stderr.read()
    assert background.wait(20) == 4, said
    assert "stopped by Ctrl-C while it waited for Consul" in said
    assert list((folder.home / "runs").iterdir()) == [], "nothing is kept of it"
    wrong = folder.yurt("ls", "--on", "nomad")
    assert (wrong.returncode, "nobody listens at" in wrong.stderr) == (6, True), wrong.stderr
    local = folder.yurt("ls", "--on", "local")
    assert (local.returncode, "its runs are those of this machine" in local.stderr) == (2, True), local.stderr
