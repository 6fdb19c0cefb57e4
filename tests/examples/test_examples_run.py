"""The small examples, as they stand, through the command line."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.support.runs import Folder

pytestmark = pytest.mark.tensorflow
EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name: str, tmp_path: Path, *arguments: str):
    shutil.copytree(EXAMPLES / name, tmp_path / "job", ignore=shutil.ignore_patterns("models", "data"))
    folder = Folder(tmp_path)
    started = folder.start(tmp_path / "job" / "job.yaml", *arguments)
    assert started.wait() == 0, started.output
    started.assert_nothing_left()
    return started, tmp_path / "job/models/latest"


def test_parameter_server_with_the_standard_server(tmp_path):
    started, model = run("parameter-server", tmp_path)
    assert (model / "curve.keras").is_file()
    off = float(started.log("chief/0").rpartition("met within ")[2].split()[0])
    assert off < 0.8, "asynchronous workers end a little elsewhere each time; untrained it is 1"
    assert started.member("ps/0")["exit"]["reason"] == "stopped"


def test_roles_in_one_script(tmp_path):
    _, model = run("roles-in-one-script", tmp_path)
    line = json.loads((model / "line.json").read_text())
    assert line["slope"] == pytest.approx(3, abs=0.2)
    assert line["offset"] == pytest.approx(1, abs=0.05)


def test_tutorial_style(tmp_path):
    started, model = run("tutorial-style", tmp_path)
    assert (model / "bars.keras").is_file()
    for index in range(2):
        assert "val_accuracy: " in started.log(f"worker/{index}")
    assert started.log("worker/0").count("Epoch ") == 3
    *_, last = (line for line in started.log("worker/0").splitlines() if "val_accuracy: " in line)
    assert float(last.rpartition("val_accuracy: ")[2].split()[0]) > 0.6  # a guess has 0.33


def test_custom_loop(tmp_path):
    started, model = run("custom-loop", tmp_path)
    assert (model / "curve.keras").is_file()
    logs = [started.log(f"worker/{index}") for index in range(2)]
    losses = [[line for line in log.splitlines() if line.startswith("epoch ")] for log in logs]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 6
    assert float(losses[0][-1].split()[-1]) < 0.1
    assert started.snapshot()["beats"]["worker/0"]["progress"]["epochs"] == 6


def test_evaluator(tmp_path):
    started, model = run("evaluator", tmp_path)
    assert (model / "curve.keras").is_file()
    log = started.log("evaluator/0")
    assert "evaluated after epoch 5: loss" in log
    assert "evaluated at the end: loss" in log
    assert started.member("evaluator/0")["exit"]["code"] == 0
    progress = started.snapshot()["beats"]["evaluator/0"]["progress"]
    assert progress["epochs"] == 5
    assert progress["loss"] > 0
    kept = {file.name for file in (started.path / "checkpoints").iterdir()}
    assert {"best.npz", "evaluations.jsonl"} <= kept
