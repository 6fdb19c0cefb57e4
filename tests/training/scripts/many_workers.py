"""An ordinary Keras 3 script, alone or one of several workers; it knows nothing of Yurt. CASES=basic,adam,..."""

import json
import os
import sys
import tempfile
import time
import traceback

import numpy as np
import tensorflow as tf

if os.environ.get("TF_USE_LEGACY_KERAS") == "1":
    keras = tf.keras
else:
    import keras

layers = keras.layers
several = "TF_CONFIG" in os.environ
strategy = tf.distribute.MultiWorkerMirroredStrategy() if several else tf.distribute.get_strategy()
ROWS, BATCH = 512, 64
random = np.random.RandomState(0)
windows = random.rand(ROWS, 12, 10).astype("float32")
x = windows.reshape(ROWS, -1)[:, :20]
y = (x.sum(1) > x.sum(1).mean()).astype("int32")
LOSS = "sparse_categorical_crossentropy"
CASES = {}


def case(function):
    CASES[function.__name__] = function
    return function


def dataset(*arrays, rows=ROWS, repeat=False, drop=True):
    data = tf.data.Dataset.from_tensor_slices(tuple(array[:rows] for array in arrays))
    data = (data.repeat() if repeat else data).batch(BATCH, drop_remainder=drop)
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    return data.with_options(options)


def classifier():
    return keras.Sequential(
        [layers.Input((20,)), layers.Dense(16, activation="relu"), layers.Dense(2, activation="softmax")]
    )


def made(build=classifier, loss=LOSS, optimizer=None, metrics=None, **options):
    """Model, optimizer and metrics made in the scope; `optimizer` and `metrics` are called there."""
    keras.utils.set_random_seed(1)
    with strategy.scope():
        model = build()
        chosen = optimizer() if optimizer else keras.optimizers.SGD(0.1, momentum=0.9)
        model.compile(chosen, loss, metrics=metrics() if metrics else None, **options)
    return model


def fitted(model, data=None, epochs=2, **options):
    """History, and the sum of all weights' sizes."""
    history = model.fit(dataset(x, y) if data is None else data, epochs=epochs, verbose=0, **options).history
    return history, size(model)


def size(model):
    return sum(float(np.abs(weight).sum()) for weight in model.get_weights())


def in_scope():
    return [keras.metrics.SparseCategoricalAccuracy(name="hits")]


@case
def windows_through_gru():
    def build():
        return keras.Sequential([layers.Input((12, 10)), layers.GRU(8), layers.RepeatVector(12), layers.Dense(10)])

    return fitted(made(build, "mse"), dataset(windows, windows))


@case
def adam():
    return fitted(made(optimizer=lambda: keras.optimizers.Adam(1e-2)))


@case
def compiled():
    return fitted(made(jit_compile=True))


@case
def metrics_by_name_and_in_the_scope():
    return fitted(made(metrics=lambda: ["accuracy", keras.metrics.SparseCategoricalCrossentropy(name="xe")]))


@case
def metric_outside_the_scope():
    found = in_scope()
    return fitted(made(metrics=lambda: found), validation_data=dataset(x, y, rows=256))


@case
def area_and_precision():
    def build():
        return keras.Sequential([layers.Input((20,)), layers.Dense(1, activation="sigmoid")])

    metrics = lambda: [keras.metrics.AUC(name="auc"), keras.metrics.Precision(name="precision")]  # noqa: E731
    return fitted(made(build, "binary_crossentropy", metrics=metrics), dataset(x, y[:, None].astype("float32")))


@case
def validation_data():
    return fitted(made(metrics=in_scope), validation_data=dataset(x, y, rows=256))


@case
def arrays_with_validation_split():
    model = made(metrics=in_scope)
    return model.fit(x, y, batch_size=BATCH, shuffle=False, validation_split=0.25, epochs=2, verbose=0).history, size(
        model
    )


@case
def arrays_shuffled():
    model = made()
    return model.fit(x, y, batch_size=BATCH, epochs=2, verbose=0).history, size(model)


@case
def steps_per_epoch():
    return fitted(made(), dataset(x, y, repeat=True), steps_per_epoch=5)


@case
def steps_per_execution():
    return fitted(made(steps_per_execution=4), dataset(x, y, repeat=True), steps_per_epoch=8)


@case
def class_weight():
    model = made()
    options = {"batch_size": BATCH, "shuffle": False, "class_weight": {0: 1.0, 1: 3.0}}
    return model.fit(x, y, epochs=2, verbose=0, **options).history, size(model)


@case
def sample_weight():
    weights = np.linspace(0.1, 2, ROWS).astype("float32")
    return fitted(made(weighted_metrics=["accuracy"]), dataset(x, y, weights))


class OwnStep(keras.Model):
    """Shows what `compute_loss` gives."""

    def train_step(self, data):
        rows, truth = data
        with tf.GradientTape() as tape:
            guess = self(rows, training=True)
            loss = self.compute_loss(rows, truth, guess)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(truth, guess)
        return {metric.name: metric.result() for metric in self.metrics}


def functional(cls):
    given = layers.Input((20,))
    return cls(given, layers.Dense(2, activation="softmax")(layers.Dense(16, activation="relu")(given)))


@case
def own_train_step():
    return fitted(made(lambda: functional(OwnStep)))


class OwnLoss(keras.Model):
    """A loss object and a tracker of its own; the step's result holds the tensor itself too."""

    def set_up(self):
        self.own_loss = keras.losses.SparseCategoricalCrossentropy()
        self.tracker = keras.metrics.Mean(name="tracked")
        return self

    @property
    def metrics(self):
        return [self.tracker]

    def train_step(self, data):
        rows, truth = data
        with tf.GradientTape() as tape:
            loss = self.own_loss(truth, self(rows, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        self.tracker.update_state(loss)
        return {"tracked": self.tracker.result()}


@case
def own_train_step_with_its_own_loss():
    return fitted(made(lambda: functional(OwnLoss).set_up(), None))


class LossItself(OwnLoss):
    @property
    def metrics(self):
        return []

    def train_step(self, data):
        rows, truth = data
        with tf.GradientTape() as tape:
            loss = self.own_loss(truth, self(rows, training=True))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


@case
def own_train_step_that_returns_the_loss():
    return fitted(made(lambda: functional(LossItself).set_up(), None))


@case
def subclass_not_yet_built():
    class Subclass(keras.Model):
        def __init__(self):
            super().__init__()
            self.one, self.two = layers.Dense(16, activation="relu"), layers.Dense(2, activation="softmax")

        def call(self, rows):
            return self.two(self.one(rows))

    return fitted(made(Subclass))


@case
def last_batch_smaller():
    return fitted(made(metrics=in_scope), dataset(x, y, rows=500, drop=False))


@case
def embedding():
    words = (windows[:, :, 0] * 50).astype("int32")
    return fitted(made(with_embedding), dataset(words, y))


def with_embedding():
    parts = [layers.Embedding(50, 8), layers.GlobalAveragePooling1D(), layers.Dense(2, activation="softmax")]
    return keras.Sequential([layers.Input((12,), dtype="int32"), *parts])


@case
def named_inputs_and_outputs():
    def build():
        a, b = layers.Input((20,), name="a"), layers.Input((12, 10), name="b")
        outputs = {
            "one": layers.Dense(2, activation="softmax", name="one")(a),
            "two": layers.Dense(1, name="two")(layers.Flatten()(b)),
        }
        return keras.Model({"a": a, "b": b}, outputs)

    model = made(build, {"one": LOSS, "two": "mse"}, metrics=lambda: {"one": ["accuracy"]})
    data = tf.data.Dataset.from_tensor_slices(({"a": x, "b": windows}, {"one": y, "two": windows[:, 0, :1]}))
    return fitted(model, data.batch(BATCH).with_options(dataset(x).options()))


@case
def regularizer():
    def build():
        parts = [layers.Dense(16, kernel_regularizer="l2"), layers.Dense(2, activation="softmax")]
        return keras.Sequential([layers.Input((20,)), *parts])

    return fitted(made(build))


@case
def run_eagerly():
    return fitted(made(run_eagerly=True), epochs=1)


@case
def evaluate_and_predict():
    model = made(metrics=in_scope)
    fitted(model, epochs=1)
    evaluated = model.evaluate(dataset(x, y, rows=256), verbose=0, return_dict=True)
    whole = model.predict(dataset(x, rows=256), verbose=0)
    part = model.predict(x[:100], batch_size=BATCH, verbose=0)
    right = np.array(model(x[:256]))
    return evaluated, [whole.shape, part.shape], float(np.abs(whole - right).max() < 1e-5), size(model)


@case
def train_on_batch():
    model = made()
    steps = [slice(i * BATCH, (i + 1) * BATCH) for i in range(3)]
    return [float(model.train_on_batch(x[step], y[step])) for step in steps], size(model)


@case
def callbacks_that_decide():
    model = made(optimizer=lambda: keras.optimizers.SGD(0.0))
    callbacks = [
        keras.callbacks.EarlyStopping(patience=2, restore_best_weights=True),
        keras.callbacks.ReduceLROnPlateau(patience=1),
        keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate),
        keras.callbacks.TerminateOnNaN(),
    ]
    history, weights = fitted(model, epochs=6, validation_data=dataset(x, y, rows=256), callbacks=callbacks)
    return len(history["loss"]), weights


@case
def clipnorm():
    return fitted(made(optimizer=lambda: keras.optimizers.SGD(1.0, clipnorm=0.02)))


@case
def clipvalue():
    return fitted(made(optimizer=lambda: keras.optimizers.SGD(1.0, clipvalue=0.005)))


@case
def global_clipnorm():
    return fitted(made(optimizer=lambda: keras.optimizers.Adam(1e-2, global_clipnorm=0.02)))


@case
def clipped_embedding():
    words = (windows[:, :, 0] * 50).astype("int32")
    return fitted(made(with_embedding, optimizer=lambda: keras.optimizers.SGD(1.0, clipnorm=0.01)), dataset(words, y))


@case
def gradient_accumulation():
    return fitted(made(optimizer=lambda: keras.optimizers.Adam(1e-2, gradient_accumulation_steps=3)), epochs=3)


@case
def gradient_accumulation_clipped_and_decayed():
    options = {"gradient_accumulation_steps": 2, "clipnorm": 0.02, "weight_decay": 0.01}
    return fitted(made(optimizer=lambda: keras.optimizers.AdamW(1e-2, **options)))


@case
def low_precision():
    keras.mixed_precision.set_global_policy("mixed_bfloat16")
    try:
        return fitted(made(), epochs=1)
    finally:
        keras.mixed_precision.set_global_policy("float32")


@case
def moving_averages():
    """Weights differ from one process's: each replica normalises by its own part of the batch."""

    def build():
        parts = [layers.Dense(8), layers.BatchNormalization(momentum=0.9), layers.Dropout(0.1)]
        return keras.Sequential([layers.Input((20,)), *parts, layers.Dense(2, activation="softmax")])

    model = made(build)
    history, _ = fitted(model, validation_data=dataset(x, y, rows=256))
    return [float(np.sum(weight)) for weight in model.get_weights()], history


@case
def fewer_rows_than_replicas():
    return fitted(made(metrics=in_scope), dataset(x, y, rows=449, drop=False))


@case
def saving():
    folder = tempfile.mkdtemp()
    model = made()
    fitted(model, epochs=1, callbacks=[keras.callbacks.ModelCheckpoint(folder + "/c-{epoch}.keras")])
    model.save(folder + "/m.keras")
    model.save_weights(folder + "/w.weights.h5")
    model.export(folder + "/served", verbose=False)
    again = keras.models.load_model(folder + "/m.keras")
    same = float(np.abs(np.array(again(x[:4])) - np.array(model(x[:4]))).max() < 1e-6)
    return sorted(os.listdir(folder)), same


if __name__ == "__main__":
    for name in (os.environ.get("CASES") or ",".join(CASES)).split(","):
        began = time.monotonic()
        try:
            told = {"value": CASES[name]()}
        except BaseException as error:
            told = {"error": f"{type(error).__name__}: {error}"[-600:]}
            traceback.print_exc()
        print("CASE", json.dumps({"name": name, "seconds": time.monotonic() - began, **told}), flush=True)
    sys.stdout.flush()
