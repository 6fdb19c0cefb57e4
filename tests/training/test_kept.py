"""Checkpoint files, and the variables of both Kerases that go into them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from yurt.training import kept
from yurt.training.errors import TrainingError
from yurt.training.kept import Kept

VALUES = {"model/0000/dense/kernel": np.arange(6, dtype="float32").reshape(2, 3), "model/0001/dense/bias": np.ones(3)}


def write(folder: Path, steps_done: int, **options) -> Kept:
    options = {"epoch": 0, "step": steps_done, "variables": VALUES, **options}
    return kept.write(folder, steps_done=steps_done, **options)


def test_what_was_written_is_read(tmp_path):
    made = write(tmp_path / "new" / "folder", 7, epoch=2, step=3, metadata={"history": {"loss": [0.1, float("nan")]}})
    assert kept.listed(tmp_path / "new" / "folder") == [made]
    assert (made.path.name, made.epoch, made.step, made.steps_done) == ("step-0000000007.npz", 2, 3, 7)
    assert not made.final
    assert not made.boundary
    metadata, values = kept.read(made.path)
    assert metadata["history"]["loss"][0] == 0.1
    assert values.keys() == VALUES.keys()
    assert all(
        np.array_equal(values[name], VALUES[name]) and values[name].dtype == VALUES[name].dtype for name in VALUES
    )


def test_numpy_alone_reads_a_file(tmp_path):
    made = write(tmp_path, 7)
    with np.load(made.path) as archive:
        assert '"steps_done": 7' in str(archive["metadata"])
        assert archive["model/0000/dense/kernel"].shape == (2, 3)


def test_a_dtype_that_numpy_has_not_is_kept_as_its_bits(tmp_path):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    value = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    metadata, values = kept.read(write(tmp_path, 1, variables={"model/0000/x": value}).path)
    assert values["model/0000/x"].dtype == np.uint16
    assert np.array_equal(kept.real(values["model/0000/x"], metadata["dtypes"]["model/0000/x"]), value)


def test_two_within_epochs_and_five_epoch_ends_stay(tmp_path):
    for epoch in range(7):
        write(tmp_path, epoch * 10 + 5, epoch=epoch, step=5)
        write(tmp_path, epoch * 10 + 10, epoch=epoch + 1, step=0, boundary=True)
    last = write(tmp_path, 70, epoch=7, step=0, boundary=True, final=True)
    assert [(each.steps_done, each.boundary, each.final) for each in kept.listed(tmp_path)] == [
        (40, True, False),
        (50, True, False),
        (55, False, False),
        (60, True, False),
        (65, False, False),
        (70, True, False),
        (70, True, True),
    ]
    assert kept.listed(tmp_path)[-1] == last


def test_nothing_there_is_no_mistake(tmp_path):
    assert kept.listed(tmp_path / "none") == []
    with pytest.raises(TrainingError, match="there is no such checkpoint"):
        kept.read(tmp_path / "none.npz")


@pytest.mark.parametrize("left", [0, 10, 0.5, 0.99])
def test_a_truncated_file_is_not_listed_and_is_named_when_read(tmp_path, left):
    first, second = write(tmp_path, 1), write(tmp_path, 2)
    whole = second.path.read_bytes()
    second.path.write_bytes(whole[: int(left if left >= 1 else left * len(whole))])
    assert kept.listed(tmp_path) == [first]
    assert kept.broken(tmp_path) == [second.path]
    with pytest.raises(TrainingError, match=r"step-0000000002\.npz: broken, or no checkpoint"):
        kept.read(second.path)


def test_a_changed_byte_is_found(tmp_path):
    made = write(tmp_path, 1)
    content = bytearray(made.path.read_bytes())
    at = content.index(VALUES["model/0000/dense/kernel"].tobytes())
    content[at + 5] ^= 1
    made.path.write_bytes(content)
    with pytest.raises(TrainingError, match="CRC"):
        kept.read(made.path)


def test_a_file_of_a_later_format_is_not_read(tmp_path, monkeypatch):
    monkeypatch.setattr(kept, "FORMAT", 2)
    made = write(tmp_path, 1)
    monkeypatch.setattr(kept, "FORMAT", 1)
    assert kept.listed(tmp_path) == []
    with pytest.raises(TrainingError, match="of format 2"):
        kept.read(made.path)


def test_a_full_disk_leaves_what_was_there(tmp_path, monkeypatch):
    first = write(tmp_path, 1)

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path, 2)
    assert [path.name for path in tmp_path.iterdir()] == [first.path.name]


def test_killed_at_any_moment_of_writing_the_last_whole_one_is_there(tmp_path):
    """A writer that never stops is killed ten times; what is listed is whole each time, and never goes back."""
    script = textwrap.dedent("""
        import sys
        import numpy as np
        from yurt.training import kept
        values = {f"model/{place:04}/x": np.full(20_000, 1.0) for place in range(4)}
        steps_done = max([each.steps_done for each in kept.listed(sys.argv[1])], default=0)
        while True:
            steps_done += 1
            kept.write(sys.argv[1], epoch=0, step=steps_done, steps_done=steps_done, variables=values)
            print(steps_done, flush=True)
    """)
    seed = int.from_bytes(os.urandom(4), "big")
    print("seed", seed)
    random, last = np.random.default_rng(seed), 0
    for _ in range(10):
        writer = subprocess.Popen(
            [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True, bufsize=1
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        try:
            writer.wait(float(random.uniform(0, 0.05)))
        except subprocess.TimeoutExpired:
            pass
        writer.send_signal(signal.SIGKILL)
        told = writer.stdout.read().split()
        writer.wait()
        found = kept.listed(tmp_path)[-1]
        assert found.steps_done >= max([last + 1, *map(int, told)])
        assert kept.read(found.path)[1]["model/0003/x"].sum() == 20_000
        last = found.steps_done
    assert (
        len(list(tmp_path.iterdir())) <= kept.WITHIN_EPOCHS + 2
    )  # the last killed writer's part, and one not yet pruned


@pytest.fixture(scope="module")
def both_kerases():
    import keras
    import tf_keras

    return [keras, tf_keras]


def build(keras, units=4, **options):
    model = keras.Sequential(
        [
            keras.layers.InputLayer(input_shape=(3,)) if "tf_keras" in keras.__name__ else keras.layers.Input((3,)),
            keras.layers.Dense(units),
            keras.layers.BatchNormalization(),
            keras.layers.Dropout(0.5, **options),
            keras.layers.Dense(1),
        ]
    )
    model.compile(keras.optimizers.Adam(0.01), "mse")
    return model


@pytest.mark.tensorflow
def test_a_model_goes_over_into_another_whatever_number_its_layers_have(tmp_path, both_kerases):
    from yurt.training import variables

    x = np.random.default_rng(0).random((32, 3), "float32")
    for keras in both_kerases:
        one, other = build(keras), build(keras)
        one.fit(x, x[:, :1], verbose=0)
        found = variables.model_variables(one)
        made = kept.write(
            tmp_path,
            epoch=1,
            step=0,
            steps_done=1,
            variables={
                name: np.array(keras.ops.convert_to_numpy(v) if hasattr(keras, "ops") else v.numpy())
                for name, v in found.items()
            },
        )
        metadata, values = kept.read(made.path)
        variables.restore(variables.model_variables(other), values, metadata["dtypes"])
        assert all(np.array_equal(a, b) for a, b in zip(one.get_weights(), other.get_weights(), strict=True))
        assert int(other.optimizer.iterations.numpy()) == 1
        assert sum(name.startswith("optimizer/") for name in values) == 2 + 2 * 6
        assert float(np.asarray(other.optimizer.learning_rate)) == pytest.approx(0.01)
        variables.restore(variables.model_variables(other, optimizer=False), values)
        # Both go on alike, the random stream of Dropout too where it has a state.
        if hasattr(keras, "ops"):
            assert [np.array_equal(one(x, training=True), other(x, training=True)) for _ in range(2)] == [True, True]


@pytest.mark.tensorflow
def test_random_states_of_legacy_keras_are_kept_where_there_are_any(both_kerases):
    from yurt.training import variables

    _, keras = both_kerases
    plain = variables.model_variables(build(keras), optimizer=False)
    stateful = variables.model_variables(build(keras, rng_type="stateful"), optimizer=False)
    assert len(stateful) == len(plain) + 1


@pytest.mark.tensorflow
def test_another_model_is_refused_by_the_first_variable_that_differs(both_kerases):
    from yurt.training import variables

    for keras in both_kerases:
        stored = {
            name: np.zeros(v.shape, "float32")
            for name, v in variables.model_variables(build(keras), optimizer=False).items()
        }
        stored = {name: value.astype("int64") if "seed" in name else value for name, value in stored.items()}
        mine = variables.model_variables(build(keras), optimizer=False)
        variables.check(mine, stored, {})
        other = variables.model_variables(build(keras, units=5), optimizer=False)
        with pytest.raises(
            TrainingError, match=r"dense\S*/kernel of the checkpoint is float32 \(3, 4\), .* is float32 \(3, 5\)"
        ):
            variables.check(other, stored, {})
        first = next(iter(mine))
        with pytest.raises(TrainingError, match=r"variable \S*dense\S*/\S+ is not in the checkpoint"):
            variables.check(mine, dict(list(stored.items())[:-1]), {})
        with pytest.raises(TrainingError, match="is not in what is trained here"):
            variables.check({first: mine[first]}, stored, {})


@pytest.mark.tensorflow
def test_a_model_that_is_not_built_is_refused_with_what_to_do(both_kerases):
    from yurt.training import variables

    for keras in both_kerases:
        model = keras.Sequential([keras.layers.Dense(1)])
        with pytest.raises(TrainingError, match="has no variables yet") as refused:
            variables.model_variables(model)
        assert "build it first" in refused.value.hint
