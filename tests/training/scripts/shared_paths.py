"""All workers save to the same paths, as ordinary scripts do; loads what they left. Keras 3 or legacy."""

import json
import os
import traceback

import numpy as np
import tensorflow as tf

keras = tf.keras
legacy = os.environ.get("TF_USE_LEGACY_KERAS") == "1"
os.chdir(os.environ["SHARED"])
strategy = tf.distribute.MultiWorkerMirroredStrategy()
x = np.random.RandomState(0).rand(512, 20).astype("float32")
y = (x.sum(1) > x.sum(1).mean()).astype("int32")
keras.utils.set_random_seed(1)
layers = keras.layers
with strategy.scope():
    model = keras.Sequential(
        [
            layers.Input((20,)),
            layers.Dense(512),
            layers.BatchNormalization(),
            layers.Dense(512),
            layers.Dense(2, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.Adam(0.001), "sparse_categorical_crossentropy", metrics=["accuracy"])
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(64, drop_remainder=True).with_options(options)
callbacks = [
    keras.callbacks.ModelCheckpoint("checkpoints/{epoch}.keras"),
    keras.callbacks.ModelCheckpoint("weights/last.weights.h5", save_weights_only=True),
    keras.callbacks.BackupAndRestore("backup"),
]
told = {}


def attempt(name, function):
    try:
        function()
        told[name] = "ok"
    except Exception as error:
        told[name] = f"{type(error).__name__}: {error}"[:300]
        traceback.print_exc()


def same(path):
    again = keras.models.load_model(path)
    np.testing.assert_allclose(np.array(again(x[:8])), np.array(model(x[:8])), atol=1e-4)


attempt("fit", lambda: model.fit(data, epochs=3, callbacks=callbacks, verbose=0))
attempt("save keras", lambda: model.save("model.keras"))
attempt("save h5", lambda: model.save("model.h5"))
attempt("save folder", lambda: model.save("folder") if legacy else model.export("folder", verbose=False))
for path in ("model.keras", "model.h5"):
    attempt("load " + path, lambda path=path: same(path))
attempt("load checkpoint", lambda: keras.models.load_model("checkpoints/3.keras"))
attempt("load folder", lambda: tf.saved_model.load("folder"))
print("CASE", json.dumps({"name": "saved", "value": told}), flush=True)
