"""The weather model is what the guide says, and trains alone and with two workers. Small, in processes of its own."""

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.test_weather_data import EXAMPLE, measurements, run, save

pytestmark = [
    pytest.mark.tensorflow,
    pytest.mark.skipif(importlib.util.find_spec("tensorflow") is None, reason="TensorFlow is not installed"),
    pytest.mark.timeout(300),
]
SMALL = ["--epochs", "1", "--batch-per-worker", "64", "--units", "8", "4"]
LEGACY = {"TF_USE_LEGACY_KERAS": "1"}

needs_legacy = pytest.mark.skipif(importlib.util.find_spec("tf_keras") is None, reason="tf_keras is not installed")
both_kerases = pytest.mark.parametrize("keras", [pytest.param("1", marks=needs_legacy, id="legacy"), "0"])

HANDED_OVER = """
import sys; sys.path.insert(0, sys.argv[1])
import numpy as np
import tensorflow as tf
from model import build
for units in ((12, 5), (6, 5, 4)):
    model = build(units=units, dropout=0.5)
    layer = model.get_layer
    window = tf.constant(np.random.default_rng(1).normal(size=(3, 36, 10)), tf.float32)
    *others, code = [layer(f"encoder_{level}") for level in range(len(units))]
    states, x = [], window
    for level in range(len(units)):
        x, state = layer(f"encoder_{level}")(x)
        states.append(state)
        x = layer(f"encoder_{level}_norm")(x, training=False)
    assert x.shape == (3, units[-1])
    x = tf.repeat(x[:, None], 36, axis=1)
    for level in range(len(units)):
        state = states[len(units) - 1 - level]
        assert state.shape[-1] == units[::-1][level]
        x = layer(f"decoder_{level}")(x, initial_state=state)
        if level < len(units) - 1:
            x = layer(f"decoder_{level}_norm")(x, training=False)
    by_hand = layer("hours")(x)
    whole = model(window, training=False)
    assert whole.shape == (3, 36, 10), whole.shape
    np.testing.assert_allclose(by_hand, whole, atol=1e-5)
    names = [own.name for own in model.layers]
    last = len(units) - 1
    assert f"decoder_{last}_norm" not in names and f"decoder_{last}_dropout" not in names
    assert sum(name.endswith("_norm") for name in names) == 2 * len(units) - 1
    assert sum(name.endswith("_dropout") for name in names) == 2 * len(units) - 1
closed = build(units=(12, 5), hand_over_states=False)
assert closed(window, training=False).shape == (3, 36, 10)
print(tf.keras.Model.__module__.partition(".")[0])
"""


def environment(**more):
    usual = {name: value for name, value in os.environ.items() if not name.startswith(("YURT_", "TF_"))}
    threads = dict.fromkeys(("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"), "1")
    return {**usual, **threads, "TF_CPP_MIN_LOG_LEVEL": "2", "no_proxy": "127.0.0.1", **more}


def train(data, folder, *arguments, **more):
    """Start train.py in a folder and a process group of its own."""
    folder.mkdir(parents=True)
    command = [sys.executable, str(EXAMPLE / "train.py"), "--data", str(data), *SMALL, *arguments]
    with open(folder / "log", "w") as log:
        return subprocess.Popen(
            command, cwd=folder, stdout=log, stderr=log, env=environment(**more), start_new_session=True
        )


def finish(folders, processes, seconds=200):
    """Wait for all; whatever happens, none is left behind."""
    try:
        for folder, process in zip(folders, processes, strict=True):
            code = process.wait(seconds)
            assert code == 0, (folder / "log").read_text()[-3000:]
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("weather")
    done = run("--source", save(measurements(300), folder / "weather.csv"), "--out", folder / "data")
    assert done.returncode == 0, done.stderr
    return folder / "data"


@both_kerases
def test_states_are_handed_over_layer_by_layer(keras):
    done = subprocess.run(
        [sys.executable, "-c", HANDED_OVER, str(EXAMPLE)],
        env=environment(TF_USE_LEGACY_KERAS=keras),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.split() == ["tf_keras" if keras == "1" else "keras"]


@both_kerases
def test_one_process_trains_saves_and_its_model_finds_strange_days(data, tmp_path, keras):
    folder = tmp_path / "alone"
    finish([folder], [train(data, folder, TF_USE_LEGACY_KERAS=keras)])
    model = folder / "model"
    assert {path.name for path in model.iterdir()} == {"weather.keras", "saved_model", "schema.json", "metrics.json"}
    assert (model / "schema.json").read_bytes() == (data / "schema.json").read_bytes()
    metrics = json.loads((model / "metrics.json").read_text())
    assert metrics["workers"] == 1
    assert metrics["test_loss"] > 0
    assert (folder / "log").read_text().splitlines()[-1].startswith(f"test: loss {metrics['test_loss']:.4f}, ")
    picture = tmp_path / "strange.png"
    done = subprocess.run(
        [sys.executable, str(EXAMPLE / "anomalies.py"), model, "--data", data, "--picture", picture, "--top", "3"],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert sum(line.lstrip().startswith(("1. ", "2. ", "3. ")) for line in done.stdout.splitlines()) == 3
    assert picture.read_bytes().startswith(b"\x89PNG")


@needs_legacy
def test_two_workers_end_with_the_same_losses(data, tmp_path):
    peers = [f"127.0.0.1:{port}" for port in free_ports(2)]
    folders = [tmp_path / f"worker-{index}" for index in range(2)]
    processes = [
        train(
            data,
            folder,
            TF_CONFIG=json.dumps({"cluster": {"worker": peers}, "task": {"type": "worker", "index": index}}),
            YURT_MODEL_DIR=str(folder / "own"),
            YURT_CHECKPOINT_DIR=str(tmp_path / "checkpoints"),
            **LEGACY,
        )
        for index, folder in enumerate(folders)
    ]
    finish(folders, processes)
    first, second = (json.loads((folder / "own" / "metrics.json").read_text()) for folder in folders)
    for metrics in (first, second):
        metrics.pop("fit_s")
    assert first == second
    assert (first["workers"], first["batch"], first["steps_per_epoch"]) == (2, 128, 4)
    assert first["history"]["loss"][0] > 0
    for folder in folders:
        assert "loss: 0.0000" not in (folder / "log").read_text()
        assert Path(folder / "own" / "weather.keras").stat().st_size > 10_000


def test_without_data_it_says_how_to_get_them(tmp_path):
    process = train(tmp_path / "nothing", tmp_path / "here")
    assert process.wait(100) == 1
    last = (tmp_path / "here" / "log").read_text().splitlines()[-1]
    assert last == f"train: there is no data in {tmp_path / 'nothing'}; make it with: python prepare.py"
