"""Two workers that save by `training.save`, each with a model folder of its own. No launcher, no hook on the path."""

import json
import os
import time
from pathlib import Path

import numpy as np
import tensorflow as tf

from yurt import training

strategy = training.strategy()
legacy = os.environ.get("TF_USE_LEGACY_KERAS") == "1"
if legacy:
    keras = tf.keras
else:
    import keras

LEADS = strategy.cluster_resolver.task_id == 0
x = np.random.RandomState(0).rand(64, 8).astype("float32")


def build(averages=False):
    keras.utils.set_random_seed(1)
    with strategy.scope():
        middle = [keras.layers.BatchNormalization()] if averages else []
        model = keras.Sequential([keras.layers.Dense(4, input_shape=(8,)), *middle, keras.layers.Dense(1)])
        model.compile("adam", "mse")
    return model


def told(name, value):
    print("CASE " + json.dumps({"name": name, "value": value}), flush=True)


plain = build()
plain.fit(x, x[:, :1], batch_size=16, verbose=0)
for name in ("model.keras", "model.h5", "deep/model.weights.h5", "serving"):
    for _ in range(2):  # the second replaces the first
        path = training.save(plain, name)
    same = None
    if path is not None:
        if name.endswith(".weights.h5"):
            again = keras.Sequential([keras.layers.Dense(4, input_shape=(8,)), keras.layers.Dense(1)])
            again.load_weights(path)
        elif name == "serving":
            served = tf.saved_model.load(path)
            again = getattr(served, "serve", None)
        else:
            again = keras.models.load_model(path, compile=False)
        with tf.device("/cpu:0"):
            weights = plain.get_weights() if not legacy else None
            same = float(np.abs(np.asarray(again(x[:4]))).sum()) > 0
            if weights is not None and hasattr(again, "get_weights"):
                same = all(np.array_equal(a, b) for a, b in zip(weights, again.get_weights(), strict=True))
    told(name, [str(path) if path else None, same])
left = [str(each) for each in sorted(Path(training.model_dir()).rglob("*")) if each.name.startswith(".")]
told("left", [left, sorted(os.listdir(training.model_dir())) if training.model_dir().is_dir() else None])

if not legacy:  # a loop of its own: each worker has its own averages
    model = build(averages=True)
    layer = model.layers[1]
    part = tf.constant(x * (1 if LEADS else 3))

    @tf.function
    def step():
        strategy.run(lambda: model(part, training=True))

    step()
    own = np.asarray(layer.moving_mean).tolist()
    path = training.save(model, "averages.keras")
    loaded = keras.models.load_model(path, compile=False).layers[1].moving_mean.numpy().tolist() if path else None
    told("averages", [own, np.asarray(layer.moving_mean).tolist(), loaded])

model = build(averages=True)
if LEADS:
    try:
        training.save(model, "alone.keras", wait_s=3)
        told("alone", "saved")
    except training.TrainingError as error:
        told("alone", str(error))
    Path(os.environ["SHARED"], "over").touch()
while not Path(os.environ["SHARED"], "over").exists():
    time.sleep(0.05)
