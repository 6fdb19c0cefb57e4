"""What a Checkpoint refuses, and when it saves: both Kerases, in this process."""

from __future__ import annotations

import json

import numpy as np
import pytest

from yurt.training import kept, states
from yurt.training.checkpoint import Checkpoint
from yurt.training.errors import TrainingError
from yurt.training.gang import Gang, gang
from yurt.training.pulse import Beat, Pulse

pytestmark = pytest.mark.tensorflow

x = np.random.default_rng(0).random((32, 3), "float32")


@pytest.fixture(params=["keras", "tf_keras"])
def keras(request):
    return __import__(request.param)


def built(keras, units=4, **options):
    model = keras.Sequential([keras.layers.Dense(units), keras.layers.Dense(1)])
    model.build((None, 3))
    model.compile(keras.optimizers.SGD(0.1), "mse", **options)
    return model


def of_an_epoch(batch=8):
    import tensorflow as tf

    return tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(batch)


def fit(keras, folder, model=None, *, checkpoint=None, epochs=2, steps=4, callbacks=(), **options):
    checkpoint = checkpoint or Checkpoint(folder, **options)
    model = model or built(keras)
    data = checkpoint.resume(of_an_epoch())
    return model.fit(data, steps_per_epoch=steps, epochs=epochs, callbacks=[*callbacks, checkpoint], verbose=0)


def test_one_at_the_end_of_each_epoch_and_one_at_the_end(keras, tmp_path):
    fit(keras, tmp_path, every_steps=3)
    found = [(each.path.name, each.epoch, each.step, each.final) for each in kept.listed(tmp_path)]
    assert found == [
        ("step-0000000003.npz", 0, 3, False),
        ("step-0000000004-epoch-0001.npz", 1, 0, False),
        ("step-0000000006.npz", 1, 2, False),
        ("step-0000000008-epoch-0002.npz", 2, 0, False),
        ("step-0000000008-final.npz", 2, 0, True),
    ]
    metadata, values = kept.read(kept.listed(tmp_path)[0].path)
    assert sum(name.startswith("metrics/") for name in values) >= 2
    assert json.dumps(metadata)


def test_more_epochs_go_on_and_no_more_train_nothing(keras, tmp_path):
    first = fit(keras, tmp_path).history["loss"]
    model = built(keras)
    assert fit(keras, tmp_path, model).history["loss"] == first
    assert int(np.asarray(model.optimizer.iterations)) == 8
    more = fit(keras, tmp_path, epochs=3)
    assert more.history["loss"][:2] == first
    assert more.epoch == [0, 1, 2]


def test_training_that_a_callback_stopped_has_ended(keras, tmp_path):
    stopping = lambda: keras.callbacks.EarlyStopping("loss", patience=1, min_delta=100.0)  # noqa: E731
    first = fit(keras, tmp_path, epochs=9, callbacks=[stopping()])
    assert len(first.history["loss"]) == 2
    again = fit(keras, tmp_path, epochs=9, callbacks=[stopping()])
    assert again.history["loss"] == first.history["loss"]


def test_a_model_of_another_shape_is_refused_and_not_trained(keras, tmp_path):
    fit(keras, tmp_path)
    other = built(keras, units=5)
    before = other.get_weights()
    with pytest.raises(TrainingError, match=r"-final\.npz is of another model: variable .*\(3, 4\).*\(3, 5\)"):
        fit(keras, tmp_path, other)
    assert all(np.array_equal(*pair) for pair in zip(before, other.get_weights(), strict=True))


def test_another_optimizer_is_refused(keras, tmp_path):
    fit(keras, tmp_path)
    model = built(keras)
    model.compile(keras.optimizers.Adam(0.1), "mse")
    with pytest.raises(TrainingError, match=r"is of another model: variable .*\(optimizer\)"):
        fit(keras, tmp_path, model)


def test_a_broken_file_is_passed_over_and_named(keras, tmp_path, capfd):
    fit(keras, tmp_path, every_steps=3)
    for name in ("step-0000000008-final.npz", "step-0000000008-epoch-0002.npz"):
        whole = (tmp_path / name).read_bytes()
        (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    content = bytearray((tmp_path / "step-0000000006.npz").read_bytes())
    content[len(content) // 2] ^= 255  # listed, and broken inside
    (tmp_path / "step-0000000006.npz").write_bytes(content)
    capfd.readouterr()
    history = fit(keras, tmp_path)
    told = capfd.readouterr().err
    for name in ("step-0000000008-final.npz", "step-0000000006.npz"):
        assert f"{name} is broken; training goes on from step-0000000004-epoch-0001.npz" in told
    assert len(history.history["loss"]) == 2


def test_a_model_that_is_not_built(tmp_path):
    import tf_keras

    model = tf_keras.Sequential([tf_keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(TrainingError, match="is not built when fit begins") as refused:
        fit(tf_keras, tmp_path, model)
    assert "call it on one batch" in refused.value.hint


def test_steps_that_are_no_multiple_of_an_execution(tmp_path):
    import keras

    with pytest.raises(TrainingError, match="4 steps is no multiple of steps_per_execution=3") as refused:
        fit(keras, tmp_path, built(keras, steps_per_execution=3))
    assert refused.value.hint == "steps_per_epoch=6"


def test_data_without_end_and_no_number_of_steps(tmp_path):
    import keras

    with pytest.raises(TrainingError, match="fit needs steps_per_epoch"):
        fit(keras, tmp_path, steps=None)


def test_one_checkpoint_serves_one_fit(keras, tmp_path):
    checkpoint = Checkpoint(tmp_path)
    fit(keras, tmp_path, checkpoint=checkpoint)
    with pytest.raises(TrainingError, match="has served another call of fit"):
        fit(keras, tmp_path, checkpoint=checkpoint)
    with pytest.raises(TrainingError, match="more than one Checkpoint"):
        fit(keras, tmp_path, callbacks=[Checkpoint(tmp_path / "other")])


def test_fewer_steps_than_the_place_in_the_epoch(keras, tmp_path):
    fit(keras, tmp_path, every_steps=3)
    for kept_one in kept.listed(tmp_path)[1:]:
        kept_one.path.unlink()
    with pytest.raises(TrainingError, match="is 3 steps into an epoch, which has 2 steps now"):
        fit(keras, tmp_path, steps=2)


def test_a_folder_that_cannot_be_read(tmp_path):
    (tmp_path / "file").write_text("")
    import keras

    with pytest.raises(TrainingError, match="could not be written"):
        fit(keras, tmp_path / "file")


def test_several_tasks_and_no_strategy(monkeypatch):
    task = {"cluster": {"worker": ["127.0.0.1:1", "127.0.0.1:2"]}, "task": {"type": "worker", "index": 0}}
    monkeypatch.setenv("TF_CONFIG", json.dumps(task))
    with pytest.raises(TrainingError, match="names several tasks and there is no strategy yet"):
        gang()


def test_states_go_through_json_and_arrays():
    arrays = {}
    state = {"a": [1, 2.5, None, "x", True], "b": {"c": np.arange(3)}, "d": np.float32(0.5), "e": (np.zeros(2),)}
    packed = json.loads(json.dumps(states.pack(state, "s", arrays)))
    back = states.unpack(packed, arrays)
    assert back["a"] == state["a"]
    assert back["d"] == 0.5
    assert np.array_equal(back["b"]["c"], state["b"]["c"])
    assert np.array_equal(back["e"][0], np.zeros(2))
    with pytest.raises(TrainingError, match="s/f is a object, which a checkpoint cannot keep"):
        states.pack({"f": object()}, "s", {})


class Members(Gang):
    """Two members in one process: each total adds what the other one will say."""

    other = (0, 0, 0)

    def total(self, values):
        return [int(a + b) for a, b in zip(values, type(self).other, strict=True)]


def test_members_speak_about_once_a_second_and_obey_at_the_same_step():
    now, told, spoken = [0.0], [False], []

    class Counting(Members):
        def total(self, values):
            spoken.append(now[0])
            return super().total(values)

    pulse = Pulse(Counting(several=True), lambda: told[0], every_steps=50, every_s=7.0, clock=lambda: now[0])
    saved_for_time = []
    for step in range(1, 1001):
        now[0] += 0.01
        if pulse.beat(step).save:
            pulse.saved(step)
            saved_for_time += [step] if step % 50 else []
    assert len(spoken) <= 4 + 10  # a few until the pace is known
    assert not saved_for_time  # a save by steps counts for both
    told[0] = True
    beats = []
    while not beats or not beats[-1].leave:
        now[0] += 0.01
        step += 1
        beats.append(pulse.beat(step))
    assert len(beats) <= 101


def test_alone_nobody_is_asked():
    now, told = [0.0], [False]
    pulse = Pulse(Gang(), lambda: told[0], every_s=2.0, clock=lambda: now[0])
    assert pulse.beat(1) == Beat(save=False, leave=False)
    now[0] = 2.5
    assert pulse.beat(2) == Beat(save=True, leave=False)
    pulse.saved(2)
    told[0] = True
    assert pulse.beat(3) == Beat(save=False, leave=True)
