"""A training that leaves checkpoints, and evaluators that follow it; one process, either Keras."""

import json
import os
from pathlib import Path

import numpy as np
import tensorflow as tf

from yurt import data, training
from yurt.training import kept

if os.environ.get("TF_USE_LEGACY_KERAS") == "1":
    keras = tf.keras
else:
    import keras

x = np.random.RandomState(0).rand(128, 8).astype("float32")
y = x[:, :1] + 1


def build(width=4):
    keras.utils.set_random_seed(1)
    layers = [keras.layers.BatchNormalization(), keras.layers.Dense(width, activation="tanh"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.layers.Dense(width, input_shape=(8,)), *layers])
    model.compile(keras.optimizers.Adam(0.02), "mse", metrics=["mae"])
    return model


def told(name, value):
    print("CASE " + json.dumps({"name": name, "value": value}), flush=True)


def refused(name, make):
    try:
        make()
        told(name, "taken")
    except training.TrainingError as error:
        told(name, str(error))


trained = build()
truth = []


class Truth(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        truth.append(trained.evaluate(x, y, verbose=0, return_dict=True))


trained.fit(x, y, batch_size=32, epochs=7, verbose=0, callbacks=[training.Checkpoint(), Truth()])
told("truth", truth)

options = {"best": "mae", "best_model": "best.keras"}
found = training.Evaluator(build(), (x, y), **options).run()
told("found", [[each.epoch, each.step, each.final, dict(each.metrics)] for each in found])
told("files", sorted(each.name for each in Path("checkpoints").iterdir() if not each.name.startswith("step-")))
told("progress", json.loads(Path(os.environ["YURT_PROGRESS_FILE"]).read_text()))
best = min(found, key=lambda each: each.metrics["mae"])
metadata, _ = kept.read("checkpoints/best.npz")
told("best", [metadata["epoch"] == best.epoch, keras.models.load_model("best.keras").evaluate(x, y, verbose=0)[1]])
told("best_mae", best.metrics["mae"])

print("AGAIN", flush=True)
again = training.Evaluator(build(), (x, y), **options).run()
told("again", [len(again), again == found])
print("OTHERS", flush=True)

data.write("rows", {"x": x, "y": y}, shards=2)
rows = data.read("rows", batch=32, transform=lambda rows: (rows["x"], rows["y"]))
once = data.read("rows", batch=32, epochs=1, transform=lambda rows: (rows["x"], rows["y"]))
dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(50)
for name, given, more in (
    ("endless", rows, {}),
    ("once", once, {}),
    ("dataset", dataset, {}),
    ("steps", dataset.repeat(), {"steps": 3}),
):
    others = training.Evaluator(build(), given, name=name, **more).run()
    told(name, others[-1].metrics["mae"])

refused("never_ends", lambda: training.Evaluator(build(), dataset.repeat()))
refused("no_such_metric", lambda: training.Evaluator(build(), (x, y), best="mea", name="a").run())
refused("another_model", lambda: training.Evaluator(build(5), (x, y), name="b").run())
refused("nothing_comes", lambda: training.Evaluator(build(), (x, y), folder="none", timeout_s=0.6).run())
told("left", sorted(each.name for each in Path("checkpoints").iterdir() if each.name.startswith(".")))
