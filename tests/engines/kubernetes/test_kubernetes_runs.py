"""Runs on a real Kubernetes, without an operator and as TFJobs: what trains, what fails, and who ends it."""

from __future__ import annotations

import base64
import json
import signal
import time

import pytest

from tests.support.flaky_s3 import MotoS3, environment
from tests.support.runs import wait_until

NASTY = "a 'b' \"c\" $(HOME) $$(YURT_POD) ${HOME} $${x} {{ env }} {{`x`}} <<<~ \\n\n\t~>>> ü %{y} # !"
SECRET = "s3cret-of-the-job"
SHOWS = """
import json, os, sys, time
print(json.dumps([sys.argv[1:], os.environ["TEXT"], open("beside.py").read(), os.environ["API_KEY"]]), flush=True)
print("secrets:", [name for name in os.environ if "TOKEN" in name], flush=True)
while not os.path.exists("/tmp/enough"):
    time.sleep(0.05)
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
FAILS = """
import os, sys, time
if os.environ["YURT_INDEX"] == "1":
    print("reading the data", flush=True)
    sys.exit("no such column: temperatur")
time.sleep(600)
"""
EATS = "import time\nhere = [bytearray(b'x' * (8 << 20)) for _ in range(64)]\ntime.sleep(600)\n"


@pytest.mark.tensorflow
def test_two_workers_train_and_the_model_is_published_to_a_bucket(runs):
    with MotoS3(address=runs.cluster.this_machine) as s3:
        s3.make_bucket("models")
        runs.folder.environment = {**runs.folder.environment, **environment(s3.url)}
        image = runs.cluster.tensorflow_image
        done = runs.to_its_end(script=TRAINS, image=image, output="s3://models/team", env=environment(s3.url))
        assert done.returncode == 0, done.stdout + done.stderr
        [run_id] = runs.folder.run_ids()
        assert f"team/{run_id}/model.keras" in s3.objects("models")
    for task in ("worker/0", "worker/1"):
        assert f"{task} | workers 2" in done.stdout
    members = json.loads((runs.folder.home / "runs" / run_id / "state.json").read_text())["members"]
    assert len({member["placed_on"].partition("/")[0] for member in members}) == 2, "each on a node of its own"
    assert "loss" in runs.folder.yurt("status", run_id).stdout


def test_text_arrives_letter_for_letter_and_no_secret_is_in_objects_that_many_may_read(runs):
    job = {"command": ["python", "train.py", "--text", NASTY], "env": {"TEXT": NASTY, "API_KEY": SECRET}}
    beside = runs.write().parent / "beside.py"
    beside.write_text(NASTY)
    run = runs.start(script=SHOWS, roles={"worker": 1}, strategy="none", **job)
    run.wait_for_line("worker/0", "secrets:")
    order = json.loads(
        base64.b64decode(runs.cluster.get("secret", run.run_id, "-n", runs.namespace)["data"]["run.json"])
    )
    kinds = "pods,jobs,configmaps,services,events" + (",tfjobs" if runs.way == "tfjob" else "")
    public = runs.cluster.kubectl("get", kinds, "-n", runs.namespace, "-o", "yaml")
    assert run.run_id in public
    for secret in (order["config"]["token"], SECRET):
        assert secret not in public
        assert base64.b64encode(secret.encode()).decode().rstrip("=") not in public
    runs.enough(run)
    assert run.wait() == 0, run.output
    lines = run.log("worker/0").splitlines()
    shown = next(line for line in lines if line.startswith("["))
    assert json.loads(shown) == [["--text", NASTY], NASTY, NASTY, SECRET]
    assert "secrets: []" in lines


def test_a_script_that_fails_ends_the_run_within_seconds_and_is_named(runs):
    run = runs.start(script=FAILS, restart="never")
    run.wait_for_line("worker/1", "no such column")
    began = time.monotonic()
    assert run.wait() == 1, run.output
    assert time.monotonic() - began < 20
    assert "worker/1 failed with exit code 1" in run.output
    assert "worker/0 failed" not in run.output
    assert run.state()["verdict"]["task"] == "worker/1"
    assert run.member("worker/0")["exit"]["reason"] == "stopped"


@pytest.mark.parametrize("runs", ["none"], indirect=True)
def test_a_task_that_needs_more_memory_than_it_may_have_is_named(runs):
    roles = {"worker": {"replicas": 1, "memory": "128MiB"}}
    done = runs.to_its_end(script=EATS, roles=roles, strategy="none", restart="never")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "worker/0 ran out of memory" in done.stdout


@pytest.mark.parametrize("runs", ["none"], indirect=True)
def test_ctrl_c_ends_the_run(runs):
    run = runs.start()
    runs.started(run)
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 4, run.output
    runs.assert_nothing_left()


def test_a_keeper_that_somebody_deletes_is_a_stopped_run(runs):
    run = runs.start()
    runs.started(run)
    runs.delete("job", f"{run.run_id}-keeper")
    assert run.wait() == 4, run.output
    assert "removed from the cluster" in run.output


def test_a_run_in_the_background_goes_on_without_its_launcher_and_is_found_again(runs):
    run = runs.start("-d")
    assert run.wait() == 0, run.output
    runs.started(run)
    host = json.loads((run.path / "host.json").read_text())["pid"]
    run.kill(host)
    runs.kill_process(run, "worker/1")
    state = runs.folder.yurt("status", run.run_id).stdout
    assert "is running" in state or "is joining" in state, state
    runs.started(run, 1)
    run.kill(json.loads((run.path / "host.json").read_text())["pid"])
    runs.enough(run)
    keeper = f"{run.run_id}-keeper"
    wait_until(lambda: runs.cluster.get("job", keeper, "-n", runs.namespace)["status"].get("succeeded"), 60, "its end")
    found = runs.folder.yurt("wait", run.run_id)
    assert found.returncode == 0, found.stdout + found.stderr
    log = runs.folder.yurt("logs", run.run_id, "worker/1").stdout
    for line in ("generation 0", "generation 1", "enough"):
        assert log.count(f"worker/1 | {line}\n") == 1, log
