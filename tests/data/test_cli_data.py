"""``yurt data``: pages, JSON, exit codes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from yurt.cli.main import main
from yurt.data import write

PAGE = Path(__file__).parents[2] / "docs" / "data.md"


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(
        "data/train",
        {"window": np.linspace(-1, 1, 40).astype("f4").reshape(10, 2, 2), "name": ["a", "b"] * 5, "n": np.arange(10)},
        shards=4,
    )
    (tmp_path / "data" / "_SUCCESS").touch()
    return tmp_path


def yurt(capfd, *arguments):
    code = main(list(arguments))
    told = capfd.readouterr()
    return code, told.out, told.err


def test_inspect(place, capfd):
    code, out, err = yurt(capfd, "data", "inspect", "data/train", "-n", "1")
    assert (code, err) == (0, "")
    assert out.startswith("data/train: 10 rows in 4 files, ")
    for part in ("window   float32  (2, 2)", "row 0", "a (5), b (5)", "-1 to 1, mean", "0 to 9, mean 4.5"):
        assert part in out
    code, out, err = yurt(capfd, "data", "inspect", "data", "--json")
    found = json.loads(out)
    assert (code, found["examples"], found["schema_guessed"], found["passed_over"]) == (0, 10, False, ["_SUCCESS"])
    assert found["rows"][1]["name"] == "b"
    assert found["histograms"]["n"]["high"] == 9


def test_check(place, capfd):
    code, out, err = yurt(capfd, "data", "check", "data/train", "--workers", "2", "--batch", "4")
    assert (code, err) == (0, "")
    assert "data/train is good to train on: 10 rows in 4 files" in out
    assert "WORKER  FILES  RECORDS  ROWS  ROWS A STEP  STEPS" in out
    code, out, err = yurt(capfd, "data", "check", "data/train", "--workers", "2", "--batch", "4", "--json")
    found = json.loads(out)
    assert (code, found["ok"], found["plan"]["steps"]) == (0, True, 2)
    assert [worker["used"] for worker in found["plan"]["workers"]] == [4, 4]


def test_bad_data_is_exit_2(place, capfd):
    file = place / "data" / "train-00001-of-00004.tfrecord"
    file.write_bytes(file.read_bytes()[:-3])
    code, out, err = yurt(capfd, "data", "check", "data/train")
    assert code == 2
    assert "is not good to train on" in out
    assert "train-00001-of-00004.tfrecord: record 2 (at byte " in err
    code, out, err = yurt(capfd, "data", "check", "data/train", "--json")
    assert (code, json.loads(out)["ok"], err) == (2, False, "")
    assert yurt(capfd, "data", "inspect", "data/train")[0] == 0


def test_nothing_there_is_exit_2(place, capfd):
    assert yurt(capfd, "data", "check", "data/trian-*") == (
        2,
        "",
        "yurt: no file matches data/trian-*\n      did you mean train?\n",
    )
    code, out, _ = yurt(capfd, "data")
    assert code == 0
    assert "inspect" in out
    code, _, err = yurt(capfd, "data", "chek", "x")
    assert code == 2
    assert "did you mean" in err.lower()


def test_the_guide_shows_the_json_that_there_is(place, capfd):
    shown = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", PAGE.read_text(), re.DOTALL)]
    told = next(block for block in shown if "plan" in block)
    found = json.loads(yurt(capfd, "data", "check", "data/train", "--json")[1])
    assert list(told) == list(found)
    assert list(told["plan"]) == list(found["plan"])
    assert list(told["files"][0]) == list(found["files"][0])
