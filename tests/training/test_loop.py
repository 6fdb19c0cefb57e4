"""Loops of one's own: ended at any moment, they go on exactly; and the mistakes that one can make."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.support.runs import Folder, processes_of
from tests.training.pairs import alone
from tests.training.resumed import STEPS, case, ended, start, worst, write_rows
from yurt.training import kept
from yurt.training.errors import TrainingError
from yurt.training.loop_progress import LoopProgress

pytestmark = pytest.mark.tensorflow


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    write_rows(tmp_path)
    made = Folder(tmp_path)
    yield made
    assert not any(processes_of(run_id) for run_id in made.run_ids())


def test_two_workers_of_which_one_is_killed_go_on_exactly(folder):
    expected = ended(start(folder, "quiet", "loop_gang.py"))
    run = start(folder, "killed", "loop_gang.py", job={"restart": "on-failure"}, DIE="26", DIES="1")
    value = ended(run)
    assert run.state()["restarts"] == 1
    assert "training goes on at epoch 2, step " in run.output
    assert worst(value, expected) < 1e-6
    assert (value["steps"], value["seen"], len(value["told"])) == (4 * STEPS, 4 * STEPS, 4)
    progress = run.snapshot()["beats"]["worker/0"]["progress"]
    assert (progress["epoch"], progress["epochs"], progress["step"], progress["steps"]) == (4, 4, STEPS, STEPS)
    assert 0 <= progress["input_wait"] <= 1
    assert progress["loss"] > 0


def test_one_process_that_is_told_to_end_goes_on_bit_by_bit(folder):
    options = {"DATA": str(folder.path / "data" / "train")}
    expected = case(alone("loop_gang.py", folder.path / "quiet", **options).output)
    own = folder.path / "told"
    told = alone("loop_gang.py", own, DIE="26", SIGNAL="SIGTERM", **options)
    assert (told.code, "interrupted: saved epoch 2, step 6; exit code 143" in told.errors) == (143, True)
    resumed = alone("loop_gang.py", own, **options)
    assert case(resumed.output) == expected
    assert kept.listed(own / "checkpoints")[-1].final
    finished = alone("loop_gang.py", own, **options)
    assert "training had ended already" in finished.errors
    assert case(finished.output) == expected


def test_progress_is_written_at_most_twice_a_second_and_values_are_fetched_only_then(tmp_path, monkeypatch):
    monkeypatch.setenv("YURT_PROGRESS_FILE", str(tmp_path / "progress.json"))
    now, fetched = [0.0], []

    class Value:
        def __float__(self):
            fetched.append(now[0])
            return 0.5

    progress = LoopProgress(3, 10, clock=lambda: now[0])
    for step in range(1, 11):
        now[0] += 0.2
        progress.waited(0.05)
        progress.step(1, step, {"loss": Value(), "accuracy": Value(), "nan": float("nan")})
    assert fetched == pytest.approx([0.2, 0.2, 0.8, 0.8, 1.4, 1.4, 2.0, 2.0])
    assert json.loads((tmp_path / "progress.json").read_text()) == {
        "epochs": 3,
        "steps": 10,
        "epoch": 2,
        "step": 10,
        "loss": 0.5,
        "metrics": {"accuracy": 0.5},
        "input_wait": 0.25,
    }


@pytest.fixture
def tracked():
    import tensorflow as tf

    return {"x": tf.Variable(1.0)}


def loop(tmp_path, tracked, **options):
    from yurt.training.loop import Loop

    return Loop(tracked, folder=tmp_path, **{"epochs": 2, "steps": 3, **options})


def test_the_plainest_loop_and_one_of_more_epochs_later(tmp_path, tracked):
    made = loop(tmp_path, tracked)
    places = []
    for epoch, step in made:
        places.append((epoch, step))
        tracked["x"].assign_add(1.0)
        made.done()
    assert places == [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]
    assert [each.path.name for each in kept.listed(tmp_path)] == [
        "step-0000000003-epoch-0001.npz",
        "step-0000000006-epoch-0002.npz",
        "step-0000000006-final.npz",
    ]
    tracked["x"].assign(0.0)
    assert list(loop(tmp_path, tracked)) == []
    assert float(tracked["x"]) == 7.0
    more = loop(tmp_path, tracked, epochs=3)
    places = []
    for place in more:
        places.append(place)
        more.done()
    assert places == [(2, 0), (2, 1), (2, 2)]


def test_data_of_any_kind_goes_on_at_the_right_batch(tmp_path, tracked):
    import tensorflow as tf

    from yurt.training import resuming
    from yurt.training.begun import Begun

    place = Begun(epoch=2, step=1, steps_done=7, name="x")
    epoch = tf.data.Dataset.range(3)
    first = lambda data, count=5: list(data.take(count).as_numpy_iterator())  # noqa: E731
    assert first(resuming.from_here(epoch, place, 1)) == [1, 2, 0, 1, 2]
    assert first(resuming.from_here(epoch.repeat(), place, 1)) == [1, 2, 0, 1, 2]
    assert first(resuming.from_here(lambda e: epoch.map(lambda x: e * 10 + x), place, 1)) == [21, 22, 30, 31, 32]
    assert first(resuming.from_here(epoch, place, 2)) == [0, 1, 2, 0, 1]  # two workers had three steps each
    with pytest.raises(TrainingError, match="a ndarray cannot be resumed within an epoch"):
        resuming.from_here(np.zeros(3), place, 1)


def test_mistakes_are_one_sentence(tmp_path, tracked):
    import keras
    import tensorflow as tf

    for wrong, sentence in (
        ({"epochs": 0}, "epochs is 0"),
        ({"every_steps": 0}, "every_steps is 0"),
        ({"every_s": -1}, "every_s is -1"),
    ):
        with pytest.raises(TrainingError, match=sentence):
            loop(tmp_path, tracked, **wrong)
    with pytest.raises(TrainingError, match="'data' is a list, which a checkpoint cannot keep"):
        loop(tmp_path, {"data": [1, 2]})
    with pytest.raises(TrainingError, match="optimizer 'adam' has no variables yet"):
        loop(tmp_path, {"adam": keras.optimizers.Adam()})
    with pytest.raises(TrainingError, match="has no variables yet"):
        loop(tmp_path, {"model": keras.Sequential([keras.layers.Dense(1)])})
    made = loop(tmp_path, tracked)
    with pytest.raises(TrainingError, match="outside a step"):
        made.done()
    with pytest.raises(TrainingError, match="a step ended without loop"):
        list(made)
    made = loop(tmp_path, tracked)
    for _ in made:
        made.done()
    with pytest.raises(TrainingError, match=r"is of another training: variable \S+ .* is float32 \(\), .* \(2,\)"):
        loop(tmp_path, {"x": tf.Variable([1.0, 2.0])})
    kept.write(tmp_path, epoch=5, step=1, steps_done=50, variables={})
    with pytest.raises(TrainingError, match="1 steps into an epoch, which has 1 steps now"):
        loop(tmp_path, tracked, steps=1, epochs=9)
