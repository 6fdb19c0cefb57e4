"""Runs in containers of a real daemon: what they find there, how they end, and that nothing outlives them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.support.runs import YURT, Folder, wait_until

LOOKS = """
import json, os, resource, sys
def read(*files):
    for file in files:
        if os.path.exists(file):
            return open(file).read().split()
print("FOUND", json.dumps({
    "uid": os.getuid(), "home": os.environ["HOME"], "home_is_there": os.path.isdir(os.environ["HOME"]),
    "cpus": len(os.sched_getaffinity(0)), "threads": os.environ.get("TF_NUM_INTRAOP_THREADS"),
    "quota": read("/sys/fs/cgroup/cpu.max") or read("/sys/fs/cgroup/cpu/cpu.cfs_quota_us"),
    "memory": read("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"),
    "cluster": json.loads(os.environ["TF_CONFIG"])["cluster"], "agent": os.getppid(),
    "secret": os.environ.get("API_KEY"), "mine": os.environ.get("OF_THE_LAUNCHER"), "user": os.environ["USER"],
}), flush=True)
open("written.txt", "w").write("by the task")
open(os.path.join(os.environ["YURT_MODEL_DIR"], "model.txt"), "w").write("a model")
"""
WAITS = 'import time\nprint("here", flush=True)\ntime.sleep(600)\n'


def found(text):
    line = next(line for line in text.splitlines() if "FOUND" in line)
    return json.loads(line.partition("FOUND ")[2])


def test_a_run_has_its_limits_its_files_and_its_peers_and_leaves_nothing(daemon, folder, job):
    """Also its token and the job's variables are nowhere that `docker inspect` shows."""
    roles = {"worker": {"replicas": 2, "cpus": 0.5, "memory": "256MiB", "env": {"API_KEY": "s3cret"}}}
    script = LOOKS + "import time; time.sleep(1.5)"
    run = folder.start(folder.write(job(roles=roles, output="./models"), train=script), "--on", "docker")
    run.wait_for_line("worker/1", "FOUND")
    first = f"{run.run_id}-worker-0"
    shown = json.dumps(daemon.inspect(first))
    assert run.wait() == 0, run.output
    looked = found(run.log("worker/1"))
    assert looked["uid"] == os.getuid()
    assert (looked["home"], looked["home_is_there"]) == ("/yurt/task/home", True)
    assert (looked["cpus"], looked["threads"]) == (1, "1"), "threads follow the limit, not the machine"
    assert looked["quota"][0] == "50000", "half a CPU of a period of 100 ms"
    assert looked["memory"] == [str(256 << 20)]
    assert looked["agent"] == 1
    assert looked["mine"] is None, "what is in the launcher's environment is not in the containers"
    assert looked["secret"] == "s3cret"
    token = (run.path / "record.json").read_text()
    assert "s3cret" not in shown + token
    hosts = [address.rpartition(":")[0] for address in looked["cluster"]["worker"]]
    assert hosts == [first, f"{run.run_id}-worker-1"]
    assert all(int(address.rpartition(":")[2]) for address in looked["cluster"]["worker"])
    work = run.path / "tasks" / "worker-0" / "work"
    assert (work / "written.txt").stat().st_uid == os.getuid()
    assert (folder.path / "job/models/latest/model.txt").read_text() == "a model"
    assert not daemon.containers(run.run_id, "-a")
    assert not daemon.networks(run.run_id)
    status = json.loads(folder.yurt("status", run.run_id, "--json").stdout)
    assert status["tasks"][0]["placed_on"] == first
    assert "FOUND" in folder.yurt("logs", run.run_id, "worker/0").stdout


@pytest.fixture
def theirs(daemon):
    """A folder of another user, outside of the test run's own, which nobody else may enter."""
    if os.getuid() != 0:
        pytest.skip("only root can be another user")
    with tempfile.TemporaryDirectory() as name:
        for place in (Path(name), Path(name, "job"), Path(name, "home")):
            place.mkdir(exist_ok=True)
            os.chown(place, OTHER, OTHER)
        yield Folder(Path(name), daemon.environment)


OTHER = 1234


def as_other(folder, group, *words):
    """A command as another user; reading everywhere is allowed to it, for the test's Python may be in root's home."""
    reading = ["--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"]
    return subprocess.run(
        ["setpriv", f"--reuid={OTHER}", f"--regid={OTHER}", f"--groups={group}", *reading, *YURT, *map(str, words)],
        env=folder.env(), cwd=folder.path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip


def test_files_belong_to_the_user_who_ran_it(daemon, theirs, job):
    file = theirs.write(job(output="./models"), train=LOOKS)
    done = as_other(theirs, daemon.socket.stat().st_gid, "run", file, "--on", "docker")
    assert done.returncode == 0, done.stderr
    looked = found(done.stdout)
    assert (looked["uid"], looked["user"]) == (OTHER, f"user{OTHER}")
    (model,) = theirs.path.glob("job/models/dock-*/model.txt")
    (written,) = theirs.home.glob("runs/*/tasks/worker-0/work/written.txt")
    assert {each.stat().st_uid for each in (model, written)} == {OTHER}


def test_who_may_not_use_the_daemon_hears_it_in_one_sentence(daemon, theirs, job):
    done = as_other(theirs, OTHER, "run", theirs.write(job(), train=LOOKS), "--on", "docker")
    assert done.returncode == 6
    assert f"yurt: you may not use the Docker daemon: no permission on {daemon.socket}\n" in done.stderr
    assert "usermod -aG docker" in done.stderr
    assert len(done.stderr.splitlines()) == 2, done.stderr


EATS = "data = []\nwhile True:\n    data.append(b'x' * (10 << 20))\n"
CHILD_EATS = f"""
import subprocess, sys
print("child", subprocess.run([sys.executable, "-c", {EATS!r}]).returncode, flush=True)
sys.exit(1)
"""


@pytest.mark.parametrize("script", [EATS, CHILD_EATS], ids=["the task", "a child of it"])
def test_out_of_memory_is_told_apart(folder, job, script):
    roles = {"worker": {"memory": "100MiB"}}
    done = folder.yurt("run", folder.write(job(roles=roles), train=script), "--on", "docker")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "worker/0 ran out of memory" in done.stdout
    status = json.loads(folder.yurt("status", "--json").stdout)
    assert status["tasks"][0]["exit"]["reason"] == "out-of-memory"


def test_a_killed_task_a_killed_container_and_a_removed_one_come_back_within_the_limit(daemon, folder, job):
    job_file = folder.write(job(restart="exit-code", max_restarts=3, roles={"worker": 2}), train=WAITS)
    run = folder.start(job_file, "--on", "docker")
    name = f"{run.run_id}-worker-1"

    def lines(count):
        wait_until(lambda: run.log("worker/1").count("here") == count, 60, f"start {count} of worker/1")

    lines(1)
    daemon.docker("exec", name, "python3", "-c", KILL_TASK)
    lines(2)
    assert run.state()["restarts"] == 1
    daemon.docker("kill", "-s", "KILL", name)
    lines(3)
    assert run.state()["restarts"] == 2
    daemon.docker("rm", "-f", name)
    lines(4)
    assert "container was removed" in run.state()["causes"][-1]["message"]
    assert daemon.containers(run.run_id) == [f"{run.run_id}-worker-0", name]
    daemon.docker("rm", "-f", name)
    assert run.wait() == 1, run.output
    assert "the limit of 3 restarts is used up" in run.output
    assert not daemon.containers(run.run_id, "-a")


#: Kills the task's process, the one child that process 1 has.
KILL_TASK = """
import os, signal
for entry in os.listdir("/proc"):
    if entry.isdigit() and entry != "1":
        try:
            fields = open(f"/proc/{entry}/stat").read().rpartition(")")[2].split()
        except OSError:
            continue
        if fields[1] == "1":
            os.kill(int(entry), signal.SIGKILL)
"""


def test_nothing_outlives_a_killed_launcher_and_what_it_left_goes_with_the_next_run(daemon, folder, job):
    run = folder.start(folder.write(job(roles={"worker": 2}), train=WAITS), "--on", "docker")
    run.wait_for_line("worker/1", "here")
    run.process.kill()
    run.process.wait()
    wait_until(lambda: not daemon.containers(run.run_id), 15, "the end of the containers")
    assert len(daemon.containers(run.run_id, "-a")) == 2, "ended, for somebody to remove"
    told = folder.yurt("prune", "--dry-run").stdout
    assert f"would go  container {run.run_id}-worker-0" in told
    assert f"would go  network {run.run_id}" in told
    done = folder.yurt("run", folder.write(job(), train="print('next')"), "--on", "docker")
    assert done.returncode == 0, done.stderr
    assert not daemon.containers(run.run_id, "-a")
    assert not daemon.networks(run.run_id)


def test_prune_removes_what_a_killed_launcher_left(daemon, folder, job):
    other = folder.start(folder.write(job(), train=WAITS), "--on", "docker")
    other.wait_for_line("worker/0", "here")
    other.process.kill()
    other.process.wait()
    wait_until(lambda: not daemon.containers(other.run_id), 15, "the end of the container")
    alive = folder.start(folder.write(job(), train=WAITS), "--on", "docker")
    try:
        alive.wait_for_line("worker/0", "here")
        folder.yurt("prune")
        assert not daemon.networks(other.run_id)
        assert daemon.containers(alive.run_id), "those of a run that goes on stay"
    finally:
        alive.process.send_signal(signal.SIGINT)
    assert alive.wait(30) == 4, alive.output


def test_in_the_background_it_is_the_same(daemon, folder, job):
    file = folder.write(job(roles={"worker": 2}), train=WAITS)
    run_id = json.loads(folder.yurt("run", file, "--on", "docker", "-d", "--json").stdout)["run"]
    log = folder.home / "runs" / run_id / "tasks/worker-1/log"
    wait_until(lambda: log.exists() and "here" in log.read_text(), 30, "the task's line")
    assert len(daemon.containers(run_id)) == 2
    assert folder.yurt("stop", run_id).returncode == 0
    assert folder.yurt("wait", run_id).returncode == 4
    assert not daemon.containers(run_id, "-a")
    assert not daemon.networks(run_id)


def test_a_model_that_could_not_be_published_is_kept_and_published_later(folder, job):
    (folder.path / "taken").write_text("a file where a folder should be")
    file = folder.write(job(output=str(folder.path / "taken" / "models")), train=LOOKS)
    done = folder.yurt("run", file, "--on", "docker")
    assert done.returncode == 5, done.stdout + done.stderr
    (run_id,) = folder.run_ids()
    assert folder.yurt("publish", run_id, "--to", str(folder.path / "models")).returncode == 0
    assert (folder.path / "models/latest/model.txt").read_text() == "a model"


def test_large_files_that_are_linked_and_folders_that_are_named_are_seen(folder, job):
    (folder.path / "data").mkdir()
    (folder.path / "data" / "a.csv").write_text("1,2")
    script = """
print("large", len(open("large.bin", "rb").read()), "data", open("/data/a.csv").read())
for place in ("large.bin", "/data/new"):
    try:
        open(place, "ab")
    except OSError as error:
        print("not", place, error.strerror)
"""
    options = {"docker": {"volumes": [f"{folder.path / 'data'}:/data:ro"]}}
    file = folder.write(job(engines=options), train=script)
    (file.parent / "large.bin").write_bytes(b"x" * (2 << 20))
    done = folder.yurt("run", file, "--on", "docker")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"large {2 << 20} data 1,2" in done.stdout
    assert "not large.bin Read-only file system" in done.stdout
    assert "not /data/new Read-only file system" in done.stdout


def test_on_the_machines_own_network(daemon, folder, job):
    file = folder.write(job(roles={"worker": 2}, engines={"docker": {"network": "host"}}), train=LOOKS)
    done = folder.yurt("run", file, "--on", "docker")
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(address.startswith("127.0.0.1:") for address in found(done.stdout)["cluster"]["worker"])


def test_orphans_of_a_task_are_reaped_while_it_runs_and_ended_with_it(folder, job):
    script = """
import os, time
for seconds in (0.2, 0.2, 600):
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            time.sleep(seconds)
        os._exit(0)
    os.wait()
time.sleep(0.5)
def zombies():
    states = [open(f"/proc/{each}/stat").read().rpartition(")")[2].split()[0] for each in os.listdir("/proc") if each.isdigit()]
    return states.count("Z")
print("zombies", zombies(), flush=True)
while zombies():
    time.sleep(0.1)
"""
    done = folder.yurt("run", folder.write(job(), train=script), "--on", "docker", timeout_s=60)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(sys.version_info < (3, 11), reason="the launcher's own Python")
def test_check_looks_into_the_image(folder, job, image):
    file = folder.write(job(), train="import tensorflow")
    told = folder.yurt("check", file, "--on", "docker", "--json")
    assert told.returncode == 0, told.stderr
    (role,) = json.loads(told.stdout)["roles"]
    assert role["python"] == "/yurt/task/bin/python"
    assert role["found"]["python"] == ".".join(map(str, sys.version_info[:3]))
    assert role["found"]["tensorflow"] is None
    told = folder.yurt("check", folder.write(job(command="missing.py"), train=""), "--on", "docker")
    assert (told.returncode, "the script 'missing.py' is not among the job's files" in told.stderr) == (2, True)
