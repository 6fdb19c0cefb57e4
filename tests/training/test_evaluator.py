"""`training.Evaluator`: each checkpoint once, the numbers that training itself would have got, the best kept."""

from __future__ import annotations

import json
import math
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tests.training.pairs import alone
from yurt.training import evaluations, evaluator, kept
from yurt.training.errors import TrainingError
from yurt.training.evaluations import Evaluated
from yurt.training.evaluator import Evaluator


@pytest.fixture(scope="module", params=["keras", "tf_keras"])
def ended(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    legacy = {"TF_USE_LEGACY_KERAS": "1"} if request.param == "tf_keras" else {}
    ended = alone("evaluating.py", folder, PYTHONPATH="", YURT_PROGRESS_FILE=str(folder / "progress.json"), **legacy)
    assert ended.code == 0, ended.errors[-2000:]
    return ended


@pytest.fixture
def told(ended):
    return {name: case["value"] for name, case in ended.cases().items()}


@pytest.mark.tensorflow
def test_each_has_the_numbers_of_the_training_itself(told):
    assert [(epoch, step, final) for epoch, step, final, _ in told["found"]] == [
        (7, 28, False),
        (7, 28, True),
        (4, 16, False),
        (5, 20, False),
        (6, 24, False),
    ]
    for epoch, _, _, metrics in told["found"]:
        assert metrics == pytest.approx(told["truth"][epoch - 1], rel=1e-5)


@pytest.mark.tensorflow
def test_what_is_left_beside_the_checkpoints(ended, told):
    assert told["files"] == ["best.npz", "evaluations.jsonl"]
    assert told["best"] == [True, pytest.approx(told["best_mae"], rel=1e-5)]
    assert told["progress"]["epoch"] == 6
    assert set(told["progress"]["metrics"]) == {"mae"}
    assert told["left"] == []
    assert "yurt: checkpoints were removed before they could be evaluated: epoch 1-3\n" in ended.errors


@pytest.mark.tensorflow
def test_it_says_a_line_each_and_none_twice(ended, told):
    first, again = ended.output.partition("AGAIN\n")[::2]
    lines = [line for line in first.splitlines() if line.startswith("evaluated ")]
    assert len(lines) == 5
    assert lines[0].startswith("evaluated after epoch 7: ")
    assert lines[0].endswith(", the best so far")
    assert lines[1].startswith("evaluated at the end: ")
    assert "evaluated" not in again.partition("OTHERS\n")[0]
    assert told["again"] == [5, True]


@pytest.mark.tensorflow
@pytest.mark.parametrize("name", ["endless", "once", "dataset"])
def test_any_data(told, name):
    assert told[name] == pytest.approx(told["found"][-1][3]["mae"], rel=1e-4)


@pytest.mark.tensorflow
def test_wrong_calls_are_one_sentence(told):
    assert told["never_ends"].startswith("this dataset never ends")
    assert told["no_such_metric"].startswith("the model has no metric 'mea' (did you mean mae?")
    assert told["another_model"].startswith("variable ")
    assert told["nothing_comes"] == "none: no new checkpoint came within 0.6 s"
    assert told["steps"] > 0


class Model:
    """As much of a model as the following of a folder needs."""

    def __init__(self, *losses):
        self.losses = list(losses)

    def evaluate(self, **arguments):
        return {"loss": self.losses.pop(0)}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(evaluator, "model_variables", lambda *a, **b: {})
    monkeypatch.setattr(evaluator, "restore", lambda *a: None)
    monkeypatch.delenv("YURT_PROGRESS_FILE", raising=False)
    return tmp_path


def write(folder, epoch, *, final=False, value=None):
    variables = {"model/0000/w": np.array([float(epoch if value is None else value)])}
    return kept.write(
        folder, epoch=epoch, step=0, steps_done=epoch * 10, variables=variables, boundary=True, final=final
    )


def test_it_follows_until_the_end_and_looks_at_none_within_epochs(folder, capsys, monkeypatch):
    rest = [
        lambda: kept.write(folder, epoch=0, step=3, steps_done=3, variables={}),
        lambda: write(folder, 1),
        lambda: write(folder, 2),
        lambda: write(folder, 2, final=True),
    ]
    clock = SimpleNamespace(sleep=lambda s: rest.pop(0)(), monotonic=time.monotonic, time=time.time)
    monkeypatch.setattr(evaluator, "time", clock)  # not `time` itself: threads of other tests rest by it
    found = Evaluator(Model(3.0, 2.0), [], folder=folder).run()
    assert [(each.epoch, each.metrics["loss"], each.final) for each in found] == [
        (1, 3, False),
        (2, 2, False),
        (2, 2, True),
    ]
    assert capsys.readouterr().out == (
        "evaluated after epoch 1: loss 3, the best so far\n"
        "evaluated after epoch 2: loss 2, the best so far\n"
        "evaluated at the end: loss 2\n"
    )


def test_the_end_is_evaluated_again_if_a_callback_changed_the_weights(folder):
    write(folder, 1)
    write(folder, 1, final=True, value=7)
    assert [each.metrics["loss"] for each in Evaluator(Model(3.0, 1.0), [], folder=folder).run()] == [3, 1]


def test_one_that_is_removed_before_it_is_reached_is_passed_over(folder):
    first = write(folder, 1)
    write(folder, 2, final=True)
    first.path.unlink()
    one = Evaluator(Model(), [], folder=folder)
    one._one(first)
    assert one._found == []


@pytest.mark.parametrize("linking", [True, False])
def test_the_best_stays_when_its_checkpoint_goes(folder, monkeypatch, linking):
    if not linking:
        monkeypatch.setattr(Path, "hardlink_to", lambda *a: (_ for _ in ()).throw(PermissionError("no links here")))
    best = write(folder, 1)
    write(folder, 2)
    write(folder, 3, final=True)
    Evaluator(Model(2.0, 1.0, 3.0), [], folder=folder).run()  # the end first, then the others
    best.path.unlink()
    assert kept.read(folder / "best.npz")[0]["epoch"] == 1
    assert not list(folder.glob(".*"))


def test_nan_is_never_the_best(folder):
    write(folder, 1, final=True)
    found = Evaluator(Model(math.nan), [], folder=folder).run()
    assert math.isnan(found[0].metrics["loss"])
    assert json.loads((folder / "evaluations.jsonl").read_text())["metrics"] == {"loss": None}
    assert not (folder / "best.npz").exists()


def test_a_line_that_a_killed_writer_left_half_is_passed_over(tmp_path):
    file = tmp_path / "e.jsonl"
    one, two = (Evaluated(epoch, epoch * 10, {"loss": 1.0}, False, epoch + 0.1) for epoch in (1, 2))
    evaluations.append(file, one)
    with file.open("a") as stream:
        stream.write('{"epoch": 2, "st')
    evaluations.append(file, two)
    assert evaluations.read(file) == [one, two]


@pytest.mark.parametrize(
    ("metric", "mode", "more"),
    [
        ("loss", "auto", False),
        ("val_accuracy", "auto", True),
        ("AUC", "auto", True),
        ("mae", "auto", False),
        ("accuracy", "min", False),
        ("loss", "max", True),
    ],
)
def test_what_is_better(metric, mode, more):
    assert evaluations.more_is_better(metric, mode) is more


def test_an_unknown_mode_is_refused():
    with pytest.raises(TrainingError, match="mode='most' is unknown"):
        Evaluator(None, [], mode="most")


def test_numbers_in_words():
    assert evaluator._in_words([1, 2, 3, 5, 7, 8]) == "1-3, 5, 7-8"
