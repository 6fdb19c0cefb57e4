"""Fit and evaluate in one process, or in workers that forget the strategy; prints nothing of its own."""

import os
import sys

import numpy as np
import tensorflow as tf

keras = tf.keras
x = np.random.RandomState(0).rand(640, 20).astype("float32")
y = x[:, :1]
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.layers.Input((20,)), keras.layers.Dense(1)])
model.compile("sgd", "mse", metrics=["mae"])
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(640).batch(64).prefetch(2)
if len(sys.argv) > 1:
    data = data.map(lambda a, b: (a, b))
options = {"verbose": int(os.environ["VERBOSE"])} if "VERBOSE" in os.environ else {}
model.fit(data, epochs=3, validation_data=data, **options)
model.evaluate(data, **options)
