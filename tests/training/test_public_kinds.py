"""Scripts of the kinds that people have published for many workers, each run as it is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.runs import Folder, Run, processes_of
from tests.training.pairs import SCRIPTS, alone, close, gang

pytestmark = pytest.mark.tensorflow

DECIDING = "worker/0"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path)
    yield made
    assert not any(processes_of(run_id) for run_id in made.run_ids())


def run(folder: Folder, script: str, *arguments: object, **changes: object) -> Run:
    words = ["python", "train.py", *map(str, arguments)]
    job = {"name": "kind", "command": words, "roles": {"worker": 2}, **changes}
    started = folder.start(folder.write(job, train=(SCRIPTS / script).read_text()))
    started.wait()
    assert started.process.returncode == 0, started.output
    return started


def told(started: Run, mark: str) -> list[dict]:
    """What each worker printed behind `mark`."""
    lines = [line for index in range(2) for line in started.log(f"worker/{index}").splitlines()]
    return [json.loads(line.removeprefix(mark)) for line in lines if line.startswith(mark)]


def test_a_loop_of_the_keras_2_years_trains_with_legacy_keras(folder):
    checkpoints = folder.path / "checkpoints"
    started = run(folder, "kind_loop.py", checkpoints)
    assert re.search(r"legacy Keras 2.21.0 \(TF_USE_LEGACY_KERAS=1\): train.py:\d+: reset_states\(\)", started.output)
    one, two = told(started, "CASE ")
    assert one["by"] == "tf_keras"
    assert one["value"] == two["value"]
    losses = [loss for loss, _ in one["value"][0]]
    assert losses[-1] < losses[0] / 2
    assert started.state()["restarts"] == 0
    assert sorted(file.name for file in checkpoints.iterdir()) == [
        "checkpoint",
        "ckpt-3.data-00000-of-00001",
        "ckpt-3.index",
    ]


def test_without_legacy_keras_it_trains_with_keras_3_as_one_process_does(tmp_path):
    ended = gang("kind_loop.py", tmp_path / "two", YURT_HOOK_MANNERS="1")
    assert [each.code for each in ended.values()] == [0, 0], ended["worker-0"].errors
    alone_config = json.dumps({"cluster": {"worker": ["127.0.0.1:1"]}, "task": {"type": "worker", "index": 0}})
    (tmp_path / "one").mkdir()
    once = alone("kind_loop.py", tmp_path / "one", YURT_HOOK_MANNERS="1", TF_CONFIG=alone_config, SHARED=str(tmp_path))
    assert once.code == 0, once.errors
    expected = once.cases()["loop"]
    assert expected["by"] == "keras"
    for each in ended.values():
        assert close(expected["value"][1], each.cases()["loop"]["value"][1], 1e-3), (expected, each.cases())


def test_a_model_outside_the_scope_and_data_distributed_already(tmp_path):
    ended = gang("kind_scope.py", tmp_path / "two")
    once = alone("kind_scope.py", tmp_path / "one").cases()
    for each in ended.values():
        assert each.code == 0, each.errors
        for name, case in each.cases().items():
            assert "error" not in case, case
            assert close(once[name]["value"], case["value"]), (name, once, case)


def test_records_in_and_a_model_out_to_a_path_that_keras_3_refuses(folder):
    records(folder.path / "records", files=2)
    target = folder.path / "kept"
    places = [target / name for name in ("weights/ckpt", "served", "whole.keras")]
    started = run(folder, "kind_records.py", folder.path / "records" / "*.tfrecord", *places)
    assert "Keras 3.15.1, mended for multi-worker-mirrored" in started.output
    one, two = told(started, "TOLD ")
    assert one["by"] == "keras"
    assert close(one["loss"], two["loss"])
    assert one["loss"][-1] < one["loss"][0] / 2
    assert one["apart"] < 1e-5
    assert two["apart"] < 1e-5
    said = [line for line in started.log(DECIDING).splitlines() if line.startswith("yurt: Keras 3: ")]
    assert [line.removeprefix("yurt: Keras 3: ").replace(str(target), "kept") for line in said] == [
        "save_weights('kept/weights/ckpt') gets the ending .weights.h5",
        "model.save('kept/served') writes a SavedModel for serving, without the optimizer",
    ]
    assert sorted(file.name for file in target.iterdir()) == ["served", "weights", "whole.keras"]


def records(folder: Path, files: int) -> None:
    import numpy as np
    import tensorflow as tf

    folder.mkdir()
    for index in range(files):
        rows = np.random.RandomState(index).rand(128, 2)
        with tf.io.TFRecordWriter(str(folder / f"{index}.tfrecord")) as writer:
            for a, b in rows:
                values = {"a": a, "b": b, "y": a + 2 * b}
                feature = {
                    name: tf.train.Feature(float_list=tf.train.FloatList(value=[value]))
                    for name, value in values.items()
                }
                writer.write(tf.train.Example(features=tf.train.Features(feature=feature)).SerializeToString())
