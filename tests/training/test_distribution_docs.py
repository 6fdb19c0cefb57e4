"""Every block of docs/distribution.md runs as it stands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml

import yurt
from tests.training.pairs import alone, environment, gang, ports
from yurt import data
from yurt.job import Job

PAGE = Path(yurt.__file__).parents[2] / "docs" / "distribution.md"
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
PYTHON = [text for language, text in BLOCKS if language == "python"]
MAIN, LOOP, EVALUATOR, SERVERS = PYTHON


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where data and a script lie."""
    made = tmp_path_factory.mktemp("guide")
    random = np.random.default_rng(0)
    for name, count in (("train", 512), ("test", 128)):
        windows = random.random((count, 8), dtype="float32")
        data.write(made / "data" / name, {"window": windows, "label": windows.sum(axis=1)}, shards=2)
    (made / "train.py").write_text(MAIN)
    return made


@pytest.mark.tensorflow
def test_two_processes_that_a_shell_starts_and_then_the_loop_and_the_evaluator(folder):
    shell = next(text for language, text in BLOCKS if language == "sh")
    for port, free in zip(("4000", "4001"), ports(2), strict=True):
        shell = shell.replace(port, str(free))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    result = subprocess.run(
        ["sh", "-e", "-c", shell],
        cwd=folder,
        env=environment(PYTHONPATH="", PATH=path),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.count("Epoch 4/4") == 2
    assert os.listdir(folder / "model") == ["windows.keras"]
    # One process for both: each begins with a strategy, and a second call gives the same.
    (folder / "rest.py").write_text(f"{LOOP}\n{EVALUATOR}")
    ended = alone(folder / "rest.py", folder, PYTHONPATH="")
    assert ended.code == 0, ended.errors[-3000:]
    assert set(os.listdir(folder / "model")) == {"windows.keras", "loop.keras"}
    assert ended.output.count("evaluated after epoch ") == 4
    line = json.loads((folder / "checkpoints/evaluations.jsonl").read_text().splitlines()[0])
    shown = json.loads(next(text for language, text in BLOCKS if language == "json"))
    assert line.keys() == shown.keys()
    assert line["metrics"].keys() == shown["metrics"].keys()


@pytest.mark.tensorflow
def test_parameter_servers(folder):
    script = folder / "servers.py"
    script.write_text(SERVERS.replace('"data/train"', repr(str(folder / "data/train"))))
    ended = gang(script, folder / "ps", roles={"chief": 1, "worker": 2, "ps": 1}, only=["chief-0"], PYTHONPATH="")
    assert ended["chief-0"].code == 0, ended["chief-0"].errors[-3000:]
    assert "Epoch 4/4" in ended["chief-0"].output
    assert (folder / "ps/chief-0/model/windows.keras").is_file()


def test_jobs_and_pieces_of_jobs_are_right():
    found = [yaml.safe_load(text) for language, text in BLOCKS if language == "yaml"]
    assert len(found) == 3
    for each in found:
        Job.model_validate({"name": "piece", "command": "python train.py", **each})


def test_links_lead_somewhere():
    for link in re.findall(r"\]\(([^)#]+)\)", PAGE.read_text()):
        if link != "checkpoints.md":  # written beside this page
            assert (PAGE.parent / link).exists(), link


def test_no_block_is_left_out():
    assert {language for language, _ in BLOCKS} == {"python", "yaml", "json", "sh"}
