"""How long `fit` waits for its input: real steps and pipelines that sleep for a known time, both Kerases.

What is told is compared with what really was slept, for the machine may be busy.
"""

from __future__ import annotations

import pytest

from tests.training.pairs import alone, gang
from tests.training.test_keras_hook import python

pytestmark = pytest.mark.tensorflow

LEGACY = {"TF_USE_LEGACY_KERAS": "1"}


def fit(folder, **changes: str):
    """What one process told and what is true."""
    ended = alone("waiting.py", folder, YURT_PROGRESS_FILE=str(folder / "progress.json"), **changes)
    assert ended.code == 0, ended.errors
    assert "yurt:" not in ended.errors
    case = ended.cases()["fit"]
    assert not case["wrapped"], "the model has its own train function again"
    return case


@pytest.mark.parametrize("changes", [{}, LEGACY, {"EAGER": "1"}], ids=["keras3", "legacy", "eager"])
def test_the_share_is_the_part_of_a_step_that_the_pipeline_takes(tmp_path, changes):
    case = fit(tmp_path, INPUT_S="0.1", STEP_S="0.05", **changes)
    assert 0.2 < case["true"] < 0.75
    assert case["told"] == pytest.approx(case["true"], abs=0.15)


def test_what_comes_at_once_is_not_waited_for(tmp_path):
    assert fit(tmp_path, STEP_S="0.1", EXECUTION="2")["told"] < 0.15


def test_measuring_changes_no_result_and_can_be_turned_off(tmp_path):
    told, untold = fit(tmp_path / "on"), fit(tmp_path / "off", YURT_HOOK_WAITING="0")
    assert told["losses"] == untold["losses"]
    assert (told["told"] is None, untold["told"]) == (False, None)


def test_where_operations_must_be_deterministic_nothing_is_measured(tmp_path):
    """TensorFlow 2.21 refuses timestamps there."""
    assert fit(tmp_path, TF_DETERMINISTIC_OPS="1")["told"] is None


def test_waiting_for_a_slow_worker_is_no_waiting_for_input(tmp_path):
    ended = gang("waiting.py", tmp_path, WORKERS="1", SLOW_TASK="1", INPUT_S="0.3")
    assert {each.code for each in ended.values()} == {0}, [each.errors for each in ended.values()]
    quick, slow = (each.cases()["fit"] for each in ended.values())
    assert quick["told"] < 0.25
    assert slow["told"] > quick["told"] + 0.3
    assert quick["losses"] == pytest.approx(slow["losses"], rel=1e-5)


def test_without_a_progress_file_tensorflow_is_left_alone():
    told = python(
        "import tensorflow as tf\n"
        "from tensorflow.python.ops import gen_dataset_ops\n"
        "model = tf.keras.Sequential([tf.keras.layers.Input((1,)), tf.keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\n"
        "model.fit(tf.zeros((4, 1)), tf.zeros((4, 1)), verbose=0)\n"
        "print(gen_dataset_ops.iterator_get_next.__module__)\n"
    ).stdout
    assert told.strip() == "tensorflow.python.ops.gen_dataset_ops"
