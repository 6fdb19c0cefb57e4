"""Runs on a real Nomad with a real Consul: what trains, what fails, what is lost, and who needs whom."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.cluster import client, folder_on, raised
from tests.support.lasting_consul import LastingConsul
from tests.support.runs import wait_until
from tests.support.scripts import MULTI_WORKER
from yurt.kv import Store

WAITS = """
import os, time
print("generation", os.environ["YURT_GENERATION"], flush=True)
while not os.path.exists(os.environ["ENOUGH"]):
    time.sleep(0.05)
print("enough", flush=True)
"""
NASTY = "a 'b' \"c\" ${HOME} $${x} %{y} %%{z} {{ env }} <<<~ $$ \\n\n~>>> ü ${NOMAD_ALLOC_INDEX}"
SHOWS = """
import json, os, sys
print(json.dumps([sys.argv[1:], os.environ["TEXT"], open("beside.py").read(), os.environ["YURT_INDEX"]]), flush=True)
print("secrets:", [name for name in os.environ if "TOKEN" in name], flush=True)
"""
TRAINS = """
import os
import numpy as np
import tensorflow as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
x = np.random.rand(64, 4).astype("float32")
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.fit(tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(8), epochs=2, verbose=2)
model.save(os.environ["YURT_MODEL_DIR"] + "/model.keras")
print("workers", strategy.num_replicas_in_sync)
"""


@pytest.fixture(scope="module")
def cluster():
    yield from raised(3)


@pytest.fixture
def folder(cluster, tmp_path):
    """A person's folder; every run in it is over when it is left."""
    yield from folder_on(cluster, tmp_path)


def write(folder, *, script=WAITS, nomad=(), **changes):
    options = {"python": sys.executable, **dict(nomad)}
    job = {
        "name": "waits",
        "command": "python train.py",
        "roles": {"worker": 2},
        "env": {"ENOUGH": str(folder.path / "enough")},
        "restart": "on-failure",
        "start_deadline": 90,
        "grace": 1,
        "engines": {"nomad": options},
        **changes,
    }
    return folder.write(job, train=script)


def started(run, generation=0, workers=2):
    """The members once every process of this generation runs."""

    def all_there():
        now = run.snapshot()
        members = {m["task"]: m for m in now["members"]}
        ready = (
            now["state"]["generation"] >= generation
            and len(members) == workers
            and all(m["status"] == "started" for m in members.values())
        )
        return now["state"]["phase"] == "running" and ready and members

    return wait_until(all_there, 90, f"generation {generation}")


def parent(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def keys(cluster) -> list[str]:
    """What is in Consul of the runs, but for what is kept of them when they are over."""
    with Store(cluster.consul) as store:
        kept = ("spec", "engine", "state", "end")
        return [key for key in store.keys("yurt/runs/") if key.rpartition("/")[2] not in kept]


@pytest.mark.tensorflow
def test_two_workers_train_on_two_nodes_and_the_model_is_published(cluster, folder):
    job = write(folder, script=TRAINS, output=f"file://{folder.path}/models")
    done = folder.yurt("run", job, "--on", "nomad", timeout_s=240)
    assert done.returncode == 0, done.stdout + done.stderr
    for task in ("worker/0", "worker/1"):
        assert f"{task} | workers 2" in done.stdout
    [run_id] = folder.run_ids()
    members = json.loads((folder.home / "runs" / run_id / "state.json").read_text())["members"]
    assert len({member["placed_on"] for member in members}) == 2, "each on a node of its own"
    assert (folder.path / "models" / run_id / "model.keras").exists()
    assert keys(cluster) == [], "members, beats and marks are gone from Consul"
    assert "loss" in folder.yurt("status", run_id).stdout


def test_text_arrives_letter_for_letter_and_no_secret_of_the_node_does(folder, monkeypatch):
    command = ["python", "train.py", "--text", NASTY]
    job = write(folder, script=SHOWS, command=command, env={"TEXT": NASTY}, roles={"worker": 1}, strategy="none")
    (job.parent / "beside.py").write_text(NASTY)
    done = folder.yurt("run", job, "--on", "nomad")
    assert done.returncode == 0, done.stdout + done.stderr
    [run_id] = folder.run_ids()
    lines = (folder.home / "runs" / run_id / "tasks" / "worker-0" / "log").read_text().splitlines()
    shown = next(line for line in lines if line.startswith("["))
    assert json.loads(shown) == [["--text", NASTY], NASTY, NASTY, "0"]
    assert "secrets: []" in lines


def test_a_killed_task_and_a_killed_agent_start_the_gang_again(folder):
    run = folder.start(write(folder), "--on", "nomad")
    os.kill(started(run)["worker/1"]["pid"], signal.SIGKILL)
    again = started(run, 1)["worker/1"]
    os.kill(parent(again["pid"]), signal.SIGKILL)
    brought_back = started(run, 2)["worker/1"]
    assert brought_back["allocation"] != again["allocation"], "another agent, of the same allocation"
    assert brought_back["allocation"].split(".")[0] == again["allocation"].split(".")[0]
    run.wait_for_line("worker/1", "generation 2")
    (folder.path / "enough").touch()
    assert run.wait() == 0, run.output
    assert "restarts: 2 of 3" in run.output
    assert run.log("worker/1").count("enough") == 1


@pytest.mark.tensorflow
def test_a_killed_task_goes_on_from_the_last_checkpoint(folder):
    """Keras's own BackupAndRestore, whose workers all read one folder."""
    changes = {"env": {"EPOCHS": "5", "EPOCH_S": "0.5"}, "nomad": {"shared_folder": f"{folder.path}/shared"}}
    run = folder.start(write(folder, script=MULTI_WORKER, **changes), "--on", "nomad")
    run.wait_for_line("worker/0", "Epoch 3/5", 240)
    os.kill(run.pid("worker/1"), signal.SIGKILL)
    assert run.wait(240) == 0, run.output
    assert run.state()["restarts"] == 1
    assert "Epoch 1/5" not in run.log("worker/0").rpartition("generation 1")[2]


def test_a_run_goes_on_without_its_launcher_and_is_found_again(cluster, folder):
    run = folder.start(write(folder), "--on", "nomad")
    started(run)
    run.wait_for_line("worker/1", "generation 0")
    run.process.kill()
    run.wait()
    os.kill(run.member("worker/1")["pid"], signal.SIGKILL)
    state = folder.yurt("status", run.run_id).stdout
    assert "is running" in state or "is joining" in state, state
    started(run, 1)
    run.wait_for_line("worker/1", "generation 1")  # its process, not only its agent
    host = json.loads((run.path / "host.json").read_text())["pid"]
    os.kill(host, signal.SIGKILL)
    (folder.path / "enough").touch()
    found = folder.yurt("wait", run.run_id)
    assert found.returncode == 0, found.stdout + found.stderr
    log = folder.yurt("logs", run.run_id, "worker/1").stdout
    for line in ("generation 0", "generation 1", "enough"):
        assert log.count(f"worker/1 | {line}\n") == 1, log
    assert keys(cluster) == []


def test_a_lost_node_is_replaced_and_its_return_disturbs_nobody(cluster, folder):
    run = folder.start(write(folder), "--on", "nomad")
    members = started(run)
    node = members["worker/1"]["placed_on"]
    lose(cluster, members["worker/1"])
    again = started(run, 1)
    assert again["worker/1"]["placed_on"] != node
    cluster.start_client(node)
    wait_until(lambda: cluster.ready() == 3, 60, "the return of the node")
    (folder.path / "enough").touch()
    assert run.wait() == 0, run.output
    assert run.state()["generation"] == 1


def lose(cluster, member) -> None:
    """The member's node, with all that runs there."""
    task = member["pid"]
    agent = parent(task)
    cluster.kill(member["placed_on"])
    for pid in (agent, task):
        with contextlib.suppress(ProcessLookupError):  # died with the other
            os.kill(pid, signal.SIGKILL)


def test_a_task_whose_second_node_is_lost_too_comes_again(cluster, folder):
    """The first node is back by then, and what it had of the task has ended well for Nomad, which forgets the task."""
    run = folder.start(write(folder), "--on", "nomad")
    first = started(run)["worker/1"]
    lose(cluster, first)
    second = started(run, 1)["worker/1"]
    cluster.start_client(first["placed_on"])
    wait_until(lambda: cluster.ready() == 3, 60, "the return of the first node")
    time.sleep(3)  # until it has ended what it had of the task
    lose(cluster, second)
    try:
        assert started(run, 2)["worker/1"]["placed_on"] == first["placed_on"]
    finally:
        cluster.start_client(second["placed_on"])
        wait_until(lambda: cluster.ready() == 3, 60, "the return of the second node")
    (folder.path / "enough").touch()
    assert run.wait() == 0, run.output
    assert run.state()["restarts"] == 2
    for task in ("worker/0", "worker/1"):
        assert run.log(task).count("enough") == 1


def test_a_task_that_was_drained_without_a_free_node_comes_when_there_is_one(cluster, folder):
    run = folder.start(write(folder, roles={"worker": 3}), "--on", "nomad")
    before = started(run, workers=3)
    node = node_id(cluster, before["worker/1"]["placed_on"])
    nomad(cluster, "node", "drain", "-enable", "-deadline", "1s", "-yes", "-detach", node)
    try:
        wait_until(lambda: run.state()["generation"] == 1, 60, "its loss")
        time.sleep(5)  # until Nomad has found no other node, and has done with it
    finally:
        nomad(cluster, "node", "drain", "-disable", "-yes", node)
    after = started(run, 1, workers=3)
    for task in ("worker/0", "worker/2"):
        assert after[task]["allocation"] == before[task]["allocation"], "nobody else was disturbed"
    (folder.path / "enough").touch()
    assert run.wait() == 0, run.output
    assert run.state()["restarts"] == 1


def test_a_drained_node_gives_its_task_to_another(cluster, folder):
    run = folder.start(write(folder), "--on", "nomad")
    node = started(run)["worker/1"]["placed_on"]
    nomad(cluster, "node", "drain", "-enable", "-deadline", "1s", "-yes", "-detach", node_id(cluster, node))
    assert started(run, 1)["worker/1"]["placed_on"] != node
    nomad(cluster, "node", "drain", "-disable", "-yes", node_id(cluster, node))
    (folder.path / "enough").touch()
    assert run.wait() == 0, run.output


def test_a_drained_node_without_a_free_one_ends_the_run_with_the_reason(cluster, folder):
    run = folder.start(write(folder, roles={"worker": 3}, start_deadline=8), "--on", "nomad")
    node = node_id(cluster, started(run, workers=3)["worker/1"]["placed_on"])
    nomad(cluster, "node", "drain", "-enable", "-deadline", "1s", "-yes", "-detach", node)
    try:
        assert run.wait() == 3, run.output
    finally:
        nomad(cluster, "node", "drain", "-disable", "-yes", node)
    assert "worker/1 never came" in run.output
    assert "its node was drained or its allocation stopped" in run.output


def nomad(cluster, *arguments: str) -> None:
    """What a person types."""
    environment = {**os.environ, **cluster.environment}
    subprocess.run(["nomad", *arguments], env=environment, check=True, capture_output=True)


def node_id(cluster, name: str) -> str:
    return next(node["ID"] for node in client(cluster).nodes() if node["Name"] == name)


def test_a_stopped_nomad_job_is_a_stopped_run(cluster, folder):
    run = folder.start(write(folder), "--on", "nomad")
    started(run)
    nomad(cluster, "job", "stop", "-detach", run.run_id)
    assert run.wait() == 4, run.output
    assert "nomad job stop" in run.output


def test_a_stopped_allocation_is_replaced(cluster, folder):
    run = folder.start(write(folder), "--on", "nomad")
    before = started(run)["worker/1"]["allocation"].split(".")[0]
    nomad(cluster, "alloc", "stop", "-detach", before)
    assert started(run, 1)["worker/1"]["allocation"].split(".")[0] != before
    (folder.path / "enough").touch()
    assert run.wait() == 0, run.output


def test_a_task_that_dies_while_nomads_server_is_away_needs_no_server(cluster, folder):
    run = folder.start(write(folder), "--on", "nomad")
    before = started(run)
    cluster.kill("server")
    try:
        os.kill(before["worker/1"]["pid"], signal.SIGKILL)
        wait_until(lambda: in_consul(cluster, run) == (1, "running"), 60, "generation 1")
    finally:
        cluster.start_server()
    wait_until(lambda: cluster.ready() == 3, 60, "the nodes")
    again = started(run, 1)
    (folder.path / "enough").touch()
    assert run.wait() == 0, run.output
    assert all(again[task]["allocation"] == before[task]["allocation"] for task in before)
    assert (run.state()["generation"], run.state()["restarts"]) == (1, 1), "the server's return changed nothing"
    for task in before:
        assert run.log(task).count("enough") == 1, "every line is there, and once"


def in_consul(cluster, run):
    """The run's generation and phase as its agents agree on them."""
    with Store(cluster.consul) as store:
        state = json.loads(store.get(f"yurt/runs/{run.run_id}/state").value)
    return state["generation"], state["phase"]


def test_a_nodes_nomad_that_is_restarted_disturbs_no_task(cluster, folder):
    run = folder.start(write(folder), "--on", "nomad")
    node = started(run)["worker/1"]["placed_on"]
    cluster.kill(node)
    cluster.start_client(node)
    wait_until(lambda: cluster.ready() == 3, 60, "the node")
    (folder.path / "enough").touch()
    assert run.wait() == 0, run.output
    assert run.state()["generation"] == 0
    assert run.log("worker/1").count("enough") == 1


def test_a_task_that_dies_while_consul_is_away_is_started_again_when_it_is_back(folder, tmp_path):
    own = LastingConsul(tmp_path)
    folder.environment = {**folder.environment, "CONSUL_HTTP_ADDR": own.address}
    own.start()
    try:
        run = folder.start(write(folder), "--on", "nomad")
        process = started(run)["worker/1"]["pid"]
        run.wait_for_line("worker/1", "generation 0")
        own.kill()
        os.kill(process, signal.SIGKILL)
        run.wait_for_line("worker/1", "waiting for the key-value store")
        own.start()
        started(run, 1)
        (folder.path / "enough").touch()
        assert run.wait() == 0, run.output
        assert run.state()["restarts"] == 1
    finally:
        for run_id in folder.run_ids():
            folder.yurt("stop", "--now", run_id)
        own.kill()


def test_half_a_gang_ends_with_the_reason_for_each_that_is_missing(cluster, folder):
    first = folder.start(write(folder), "--on", "nomad")
    started(first)
    second = folder.yurt("run", write(folder, start_deadline=12), "--on", "nomad")
    assert second.returncode == 3, second.stdout + second.stderr
    assert "not all tasks can start now: 1 task of worker" in second.stdout
    assert "worker/1 never came" in second.stdout
    assert "hint: worker/1: cpu is used up on 2 of 3 nodes" in second.stdout
    (folder.path / "enough").touch()
    assert first.wait() == 0


@pytest.mark.parametrize(
    ("changes", "nomad", "said"),
    [
        ({"roles": {"worker": 4}}, {}, "4 tasks need as many nodes, and there are 3"),
        ({"roles": {"worker": {"replicas": 2, "memory": "64GiB"}}}, {}, "asks for 65,536 MB of memory; 0 of 3 nodes"),
        ({}, {"datacenters": ["dc9"]}, "no node is in dc9; there are nodes in dc1"),
        ({}, {"constraints": [{"attribute": "${node.class}", "value": "x"}]}, "${node.class} = x does not hold on 3"),
        ({}, {"python": "/nowhere/python"}, '"/nowhere/python" could not be found'),
    ],
)
def test_what_cannot_run_is_said_at_once(folder, changes, nomad, said):
    done = folder.yurt("run", write(folder, nomad=nomad, **changes), "--on", "nomad")
    assert done.returncode == 6, done.stdout + done.stderr
    assert said in done.stdout + done.stderr


def test_ctrl_c_ends_the_run_and_its_job(cluster, folder):
    run = folder.start(write(folder), "--on", "nomad")
    started(run)
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 4, run.output
    run.assert_nothing_left()
    assert keys(cluster) == []
