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
    assert off < 0.5
    assert started.member("ps/0")["exit"]["reason"] == "stopped"


def test_roles_in_one_script(tmp_path):
    _, model = run("roles-in-one-script", tmp_path)
    line = json.loads((model / "line.json").read_text())
    assert line["slope"] == pytest.approx(3, abs=0.2)
    assert line["offset"] == pytest.approx(1, abs=0.05)


def test_evaluator(tmp_path):
    started, model = run("evaluator", tmp_path)
    assert (model / "curve.keras").is_file()
    assert "after epoch 6: loss" in started.log("evaluator/0")
    assert started.member("evaluator/0")["exit"]["code"] == 0
