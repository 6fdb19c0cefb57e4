"""A script of the Keras 2 years, on Keras 3."""

import json
import os

import numpy as np
import tensorflow as tf
from tensorflow.keras import backend as K

keras = tf.keras
x = np.random.RandomState(0).rand(64, 8).astype("float32")
model = keras.Sequential([keras.layers.Input((8,)), keras.layers.Dense(1)])
model.compile(keras.optimizers.legacy.SGD(lr=0.5), "mse")
first = float(model.optimizer.lr)
model.optimizer.lr = 0.25
K.set_value(model.optimizer.learning_rate, float(K.get_value(model.optimizer.learning_rate)) / 2)
callbacks = [
    keras.callbacks.ModelCheckpoint("saved/{epoch}", period=1),
    keras.callbacks.ModelCheckpoint("weights/{epoch}", save_weights_only=True),
    keras.callbacks.experimental.BackupAndRestore("backup"),
]
model.fit(x, x[:, :1], epochs=1, callbacks=callbacks, verbose=0)
creator = keras.utils.experimental.DatasetCreator(
    lambda context: tf.data.Dataset.from_tensor_slices((x, x[:, :1])).repeat().batch(8)
)
model.fit(creator, steps_per_epoch=2, epochs=1, verbose=0)
model.save("served")
model.save("whole", save_format="h5")
tf.saved_model.load("served")
value = [first, float(model.optimizer.lr), sorted(os.listdir("saved")), sorted(os.listdir("weights"))]
print("CASE", json.dumps({"name": "manners", "value": [*value, os.path.isfile("whole.h5")]}), flush=True)
