"""One script for every role of a parameter-server cluster, without a branch: only the chief comes past `strategy`."""

import json

import keras
import numpy as np
import tensorflow as tf

from yurt import training

strategy = training.strategy()
coordinator = training.coordinator()
x = np.random.RandomState(0).rand(256, 8).astype("float32")
with strategy.scope():
    model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(0.1), "mse")
    count = tf.Variable(0)
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).repeat().batch(32)
losses = model.fit(data, epochs=3, steps_per_epoch=8, verbose=0).history["loss"]
for _ in range(10):
    coordinator.schedule(tf.function(lambda: count.assign_add(1)))
coordinator.join()
told = {
    "strategy": type(strategy).__name__,
    "same": training.coordinator(strategy) is coordinator,
    "down": losses[-1] < losses[0],
    "count": int(count.numpy()),
    "saved": str(training.save(model, "line.keras")),
    "loads": keras.models.load_model("model/line.keras").count_params(),
}
print("CASE " + json.dumps({"name": "chief", "value": told}), flush=True)
