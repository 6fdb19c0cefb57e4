"""What people forget or do twice: a model and an optimizer made outside the scope, data that is distributed already."""

import json
import os

import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
x = np.random.RandomState(0).rand(256, 8).astype("float32")
y = x.sum(axis=1, keepdims=True)
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(32).with_options(options)


def layers():
    return [tf.keras.layers.Dense(4, activation="relu"), tf.keras.layers.Dense(1)]


def outside():
    tf.keras.utils.set_random_seed(3)
    model, optimizer = tf.keras.Sequential(layers()), tf.keras.optimizers.SGD(0.05)
    with strategy.scope():
        model.compile(optimizer=optimizer, loss="mse")
    return model.fit(data, epochs=2, verbose=0).history["loss"]


def distributed_already():
    tf.keras.utils.set_random_seed(3)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Input((8,)), *layers()])
        model.compile(tf.keras.optimizers.SGD(0.05), "mse")
    ready = strategy.experimental_distribute_dataset(data.repeat())
    return model.fit(ready, epochs=2, steps_per_epoch=8, verbose=0).history["loss"]


for case in (outside, distributed_already):
    try:
        told = {"value": [float(loss) for loss in case()]}
    except Exception as error:
        told = {"error": f"{type(error).__name__}: {error}"[:300]}
    print("CASE", json.dumps({"name": case.__name__, "by": os.environ.get("TF_USE_LEGACY_KERAS"), **told}), flush=True)
