"""Keras 3 under ParameterServerStrategy, with a script that branches on its role and knows nothing of it."""

from __future__ import annotations

import json

import pytest

from tests.training.pairs import alone, close, gang

pytestmark = pytest.mark.tensorflow

ROLES = {"chief": 1, "worker": 2, "ps": 2}
COUNTS = {
    "steps": 48,
    "steps_per_execution": 32,
    "finite_data": 32,
    "arrays": 32,
    "clipping": 32,
}


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """What the chief prints, with variables whole and with a partitioner."""
    folder = tmp_path_factory.mktemp("ps")
    ended = gang("parameter_server.py", folder, roles=ROLES, only=["chief-0"], PARTITIONED="1")
    return ended["chief-0"].cases(), ended["chief-0"].errors


@pytest.mark.parametrize("name", COUNTS)
def test_every_step_is_counted_once_and_the_model_learns(told, name):
    case = told[0][name]
    assert case.get("error") is None
    history, count = case["value"]
    assert count == COUNTS[name]
    assert history["loss"][-1] < 0.72
    assert history["accuracy"][-1] > 0.5


def test_one_worker_equals_one_process(tmp_path):
    """With one worker steps come in their order: the same data, the same results."""
    cases = "steps,validation_and_evaluate,clipping"
    one = alone("parameter_server.py", tmp_path / "one", CASES=cases).cases()
    roles = {"chief": 1, "worker": 1, "ps": 1}
    chief = gang("parameter_server.py", tmp_path / "two", roles=roles, only=["chief-0"], CASES=cases)["chief-0"]
    for name in cases.split(","):
        assert close(one[name]["value"], chief.cases()[name]["value"]), name


def test_legacy_keras_works_with_the_hook_too_and_tells_its_progress(tmp_path):
    options = {"CASES": "steps", "TF_USE_LEGACY_KERAS": "1"}
    chief = gang("parameter_server.py", tmp_path, roles=ROLES, only=["chief-0"], **options)["chief-0"]
    history, count = chief.cases()["steps"]["value"]
    assert count == 48
    progress = json.loads((tmp_path / "chief-0/progress.json").read_text())
    assert (progress["epoch"], progress["epochs"], progress["step"], progress["steps"]) == (3, 3, 16, 16)
    assert progress["loss"] == pytest.approx(history["loss"][-1])


def test_validation_and_evaluate_show_results(told):
    history, count, evaluated = told[0]["validation_and_evaluate"]["value"]
    assert count == 32
    assert {"val_loss", "val_accuracy"} < set(history)
    assert evaluated["accuracy"] > 0.5


def test_predict_keeps_the_order(told):
    assert told[0]["predict_in_order"]["value"] == [[200, 2], 1.0]


def test_saving_and_callbacks(told):
    assert told[0]["saving_and_callbacks"]["value"] == [["1.keras", "2.keras"], 1.0]


def test_a_loop_of_its_own_loses_no_update(told):
    count, iterations, variable = told[0]["own_loop_counts_every_step"]["value"]
    assert (count, iterations) == (60, 60)
    assert variable == pytest.approx([-6.0] * 4, rel=1e-5)


@pytest.mark.parametrize("name", ["gradient_accumulation", "train_on_batch"])
def test_what_cannot_work_says_so_in_one_sentence(told, name):
    assert "does not work under ParameterServerStrategy" in told[0][name]["error"]


def test_whole_variables_are_said_aloud(told):
    assert "yurt: Keras 3's variables are not partitioned" in told[1]
