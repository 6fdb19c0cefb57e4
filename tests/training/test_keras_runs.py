"""From the job file to the script: which Keras it gets, and how it gets another. Real runs of two workers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.runs import Folder, processes_of

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import sys
import keras
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
keras.utils.set_random_seed(1)
with strategy.scope():
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(4, activation="relu"), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
x = np.random.RandomState(0).rand(256, 8).astype("float32")
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(32).with_options(options)
callbacks = [keras.callbacks.ModelCheckpoint(path) for path in sys.argv[1:]]
history = model.fit(data, epochs=2, callbacks=callbacks).history
print("by", model.__module__.partition(".")[0], "loss", "%.6f" % history["loss"][-1], flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    made = Folder(tmp_path)
    yield made
    assert not any(processes_of(run_id) for run_id in made.run_ids())


def run(folder, script=SCRIPT, arguments="", **changes):
    job = {"name": "keras", "command": f"python train.py {arguments}", "roles": {"worker": 2}, **changes}
    started = folder.start(folder.write(job, train=script))
    started.wait()
    return started


def ends(started) -> list[str]:
    """What each task printed last: which Keras, and its loss."""
    logs = [started.log(f"worker/{index}") for index in range(2)]
    return [line for log in logs for line in log.splitlines() if line.startswith("by ")]


def test_an_unchanged_script_on_two_workers_equals_the_same_on_one(folder):
    two = run(folder)
    assert two.process.returncode == 0, two.output
    alone = Folder(folder.path / "alone")
    alone.path.mkdir()
    one = run(alone, roles={"worker": 1})
    assert one.process.returncode == 0, one.output
    told = [line for line in one.log("worker/0").splitlines() if line.startswith("by ")]
    assert ends(two) == told * 2
    assert two.output.count("Keras 3.15.1, mended for multi-worker-mirrored") == 1
    assert "mended" not in one.output
    assert two.snapshot()["beats"]["worker/1"]["progress"]["examples_per_s"] > 0


def test_a_source_of_the_keras_2_years_gets_legacy_keras_at_once(folder):
    script = SCRIPT.replace("ModelCheckpoint(path) for path in sys.argv[1:]", 'ModelCheckpoint("saved/model-{epoch}")')
    started = run(folder, script)
    assert started.process.returncode == 0, started.output
    assert [line.split()[1] for line in ends(started)] == ["tf_keras"] * 2
    assert "train.py:16: ModelCheckpoint to a path without .keras or .h5" in started.output
    assert started.state()["restarts"] == 0


def test_an_error_that_only_keras_2_knows_an_answer_to_starts_all_again_with_it(folder):
    started = run(folder, arguments="saved/model-{epoch}", restart="never")
    assert started.process.returncode == 0, started.output
    assert [line.split()[1] for line in ends(started)] == ["tf_keras"] * 2
    state = started.state()
    assert (state["restarts"], state["generation"], state["keras"]) == (1, 1, "legacy")
    assert "needs legacy Keras (ValueError: The filepath provided must end in" in started.output
    assert "legacy Keras 2.21.0 (TF_USE_LEGACY_KERAS=1): what the script asked for when it ran first" in started.output


def test_a_run_that_may_have_no_restart_says_what_it_needed(folder):
    started = run(folder, arguments="saved/model-{epoch}", max_restarts=0)
    assert started.process.returncode == 1
    assert "needs legacy Keras (ValueError: The filepath provided must end in" in started.output


def test_off_means_off(folder):
    script = "import os\nprint('hooked', 'hook' in os.environ.get('PYTHONPATH', ''))\n"
    started = run(folder, script, keras="off")
    assert started.process.returncode == 0
    assert "hooked False" in started.log("worker/0")
