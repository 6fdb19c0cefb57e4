"""What a person sees of `fit`: progress, lines instead of bars, and a forgotten strategy. Both Kerases, real."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.training.pairs import SCRIPTS, alone, environment

pytestmark = pytest.mark.tensorflow

CONFIG = '{"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}, "task": {"type": "worker", "index": 0}}'


@pytest.fixture(scope="module", params=["0", "1"], ids=["keras3", "legacy"])
def told(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown")
    legacy = {"TF_USE_LEGACY_KERAS": "1"} if request.param == "1" else {}
    file = folder / "progress.json"
    ended = alone("shown.py", folder, TF_CONFIG=CONFIG, YURT_PROGRESS_FILE=str(file), **legacy)
    assert ended.code == 0, ended.errors
    return ended, json.loads(file.read_text()), sorted(each.name for each in folder.iterdir())


def test_progress_is_told(told):
    _, progress, files = told
    assert (progress["epoch"], progress["epochs"], progress["step"], progress["steps"]) == (3, 3, 10, 10)
    assert progress["loss"] > 0
    assert {"mae", "val_mae", "val_loss"} <= set(progress["metrics"])
    assert 1000 < progress["examples_per_s"] < 10_000_000
    assert files == ["err", "out", "progress.json"]


def test_a_file_gets_lines_and_no_bars(told):
    output = told[0].output
    assert "\b" not in output
    assert "\x1b" not in output
    assert [line for line in output.splitlines() if line.startswith("Epoch")] == ["Epoch 1/3", "Epoch 2/3", "Epoch 3/3"]
    assert sum(line.startswith("10/10 - ") for line in output.splitlines()) == 4


def test_a_forgotten_strategy_is_said_once(told):
    lines = [line for line in told[0].errors.splitlines() if line.startswith("yurt:")]
    text = "fit runs under no strategy although TF_CONFIG names 2 workers: each trains a model of its own; "
    assert lines == [f"yurt: {text}make and compile the model inside `with strategy.scope():`"]


def test_silence_stays_silence_and_a_broken_place_for_progress_stops_nothing(tmp_path):
    ended = alone("shown.py", tmp_path, VERBOSE="0", YURT_PROGRESS_FILE=str(tmp_path / "no/such/folder/p.json"))
    assert (ended.code, ended.output) == (0, "")
    assert ended.errors.count("yurt: no progress is told: ") == 1


def test_a_step_costs_next_to_nothing(tmp_path):
    """The callback alone, as it is called at every step, against the shortest step there is: 1 ms."""
    program = (
        "import sys, timeit; sys.path.insert(0, sys.argv[1])\n"
        "import sitecustomize as hook\n"
        "progress = hook.own('_yurt_progress')\n"
        "class Base:\n"
        "    model, params = None, {'epochs': 1, 'steps': 10}\n"
        "progress.parameter_server = lambda strategy: False\n"
        "each = progress.progress_callback(Base)(sys.argv[2], 64)\n"
        "each.on_train_begin(); each.on_epoch_begin(0)\n"
        "count = 200000\n"
        "print(timeit.timeit(lambda: each.on_train_batch_end(1, {'loss': 1.0}), number=count) / count)\n"
    )
    path = str(SCRIPTS.parents[2] / "src/yurt/training/hook")
    command = [sys.executable, "-c", program, path, os.fspath(tmp_path / "p.json")]
    result = subprocess.run(command, env=environment(), capture_output=True, text=True, check=True)
    assert float(result.stdout) < 10e-6
