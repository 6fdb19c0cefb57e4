"""Keras 3 under MultiWorkerMirroredStrategy: two workers against one process, with a script that knows nothing of it."""

from __future__ import annotations

import json
import math

import pytest

from tests.training.pairs import alone, close, gang
from tests.training.scripts_cases import cases_of

pytestmark = pytest.mark.tensorflow

#: Two workers give something else than one process; what, is tested by name below.
DIFFERENT = ("moving_averages", "fewer_rows_than_replicas", "low_precision", "saving")
EQUAL = tuple(name for name in cases_of("many_workers.py") if name not in DIFFERENT)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What one process and two workers print for all cases; each process starts TensorFlow once."""
    folder = tmp_path_factory.mktemp("pair")
    one = alone("many_workers.py", folder / "one")
    two = gang("many_workers.py", folder / "two", timeout_s=240)
    assert [each.code for each in (one, *two.values())] == [0, 0, 0]
    progress = [json.loads((folder / "two" / name / "progress.json").read_text()) for name in two]
    return one.cases(), two["worker-0"].cases(), two["worker-1"].cases(), two["worker-0"].errors, progress


@pytest.mark.parametrize("name", EQUAL)
def test_two_workers_equal_one_process(told, name):
    one, first, second = (cases[name] for cases in told[:3])
    assert [case.get("error") for case in (one, first, second)] == [None] * 3
    assert close(first["value"], second["value"])
    assert close(one["value"], first["value"])


def test_moving_averages_are_the_same_on_all_workers(told):
    _, first, second = (cases["moving_averages"]["value"] for cases in told[:3])
    assert close(first, second)


def test_a_last_batch_with_fewer_rows_than_replicas_trains_on(told):
    one, first, second = (cases["fewer_rows_than_replicas"]["value"] for cases in told[:3])
    assert close(first, second)
    assert all(math.isfinite(loss) for loss in first[0]["loss"])
    assert one[1] == pytest.approx(first[1], rel=0.05)


def test_low_precision_is_near(told):
    one, first, second = (cases["low_precision"]["value"] for cases in told[:3])
    assert close(first, second)
    assert one[1] == pytest.approx(first[1], rel=1e-3)


def test_every_worker_saves_to_its_own_path(told):
    for cases in told[:3]:
        files, same = cases["saving"]["value"]
        assert (files, same) == (["c-1.keras", "m.keras", "served", "w.weights.h5"], 1.0)


def test_nothing_is_complained_about_and_progress_is_told(told):
    assert "yurt:" not in told[3]
    for progress in told[4]:
        assert progress["epoch"] == progress["epochs"] == 1
        assert progress["step"] == progress["steps"] == 8
        assert progress["loss"] > 0
        assert progress["examples_per_s"] > 0
