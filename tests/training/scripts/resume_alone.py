"""One process; KERAS is `keras` or `tf_keras`. It dies as DIE says (`step 7`: after so many steps of this process)."""

import importlib
import json
import os
import signal

import numpy as np
import tensorflow as tf

from yurt import training

keras = importlib.import_module(os.environ.get("KERAS", "keras"))
legacy = keras.__name__ == "tf_keras"
at_once, epochs, steps = int(os.environ.get("AT_ONCE", "1")), 4, 8
random = np.random.RandomState(0)
x = random.rand(128, 6).astype("float32")
y = (x[:, :1] * x[:, 1:2]).astype("float32")
layers = keras.layers
keras.utils.set_random_seed(1)
dropout = layers.Dropout(0.3, seed=3, **({"rng_type": "stateful"} if legacy else {}))
model = keras.Sequential([layers.Dense(8, activation="relu"), layers.BatchNormalization(), dropout, layers.Dense(1)])
if os.environ.get("UNBUILT") != "1":
    model.build((None, 6))
schedule = keras.optimizers.schedules.ExponentialDecay(0.05, 5, 0.9)
rate = schedule if os.environ.get("SCHEDULE") == "1" else 0.05
model.compile(keras.optimizers.Adam(rate), "mse", metrics=["mae"], steps_per_execution=at_once)


def of_an_epoch(epoch):
    order = tf.random.experimental.stateless_shuffle(tf.range(128), seed=tf.stack([tf.constant(5, tf.int64), epoch]))
    return tf.data.Dataset.from_tensor_slices((tf.gather(x, order), tf.gather(y, order))).batch(16)


class Die(keras.callbacks.Callback):
    steps = 0

    def on_train_batch_end(self, batch, logs=None):
        self.steps += at_once
        kind, _, number = os.environ.get("DIE", "").partition(" ")
        if kind in ("step", "term") and self.steps == int(number):
            os.kill(os.getpid(), signal.SIGKILL if kind == "step" else signal.SIGTERM)


class Counts(keras.callbacks.Callback):
    """A callback of the script's own that has a state."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_epoch_end(self, epoch, logs=None):
        self.seen.append([epoch, np.float32(logs["loss"])])

    def get_state(self):
        return {"seen": self.seen}

    def set_state(self, state):
        self.seen = state["seen"]


if os.environ.get("DIE") == "write":
    import zipfile

    from yurt.training import kept

    real = zipfile.ZipFile.open
    count = iter(range(1000))

    def dying(self, name, mode="r", **options):
        if mode == "w" and next(count) == 10:  # in the middle of the first file
            self.fp.flush()
            os.kill(os.getpid(), signal.SIGKILL)
        return real(self, name, mode, **options)

    kept.zipfile.ZipFile.open = dying

if os.environ.get("DIE") == "full":
    from yurt.training import kept

    def full(descriptor):
        raise OSError(28, "No space left on device")

    kept.os.fsync = full

counts = Counts()
checkpoint = training.Checkpoint("kept", every_steps=int(os.environ.get("EVERY", "3")))
plain = os.environ.get("DATA") == "plain"  # not passed through resume
data = of_an_epoch(tf.constant(0, tf.int64)) if plain else checkpoint.resume(of_an_epoch)
stopping = keras.callbacks.EarlyStopping("val_loss", patience=2, restore_best_weights=True, min_delta=0.002)
slower = keras.callbacks.ReduceLROnPlateau("loss", factor=0.5, patience=1, min_delta=0.02)
callbacks = [checkpoint, counts, stopping, Die(), *([] if rate is schedule else [slower])]
history = model.fit(
    data,
    steps_per_epoch=steps if not plain else None,
    epochs=int(os.environ.get("EPOCHS", epochs)),
    callbacks=callbacks,
    validation_data=(x[:32], y[:32]),
    verbose=0,
).history
value = {
    "history": {name: [float(value) for value in values] for name, values in history.items()},
    "steps": int(model.optimizer.iterations.numpy()),
    "weights": [float(np.abs(weight).sum()) for weight in model.get_weights()],
    "seen": [[int(epoch), float(loss)] for epoch, loss in counts.seen],
    "stopping": [int(stopping.wait), float(stopping.best)],
}
print("CASE", json.dumps({"name": "resumed", "value": value}), flush=True)
