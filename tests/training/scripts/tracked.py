"""A `fit` whose trackers the job file names. OWN: the script adds a TensorBoard itself. Epochs from INITIAL to EPOCHS."""

import os

import tensorflow as tf

keras = tf.keras
strategy = tf.distribute.MultiWorkerMirroredStrategy() if "WORKERS" in os.environ else tf.distribute.get_strategy()
with strategy.scope():
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.BatchNormalization(), keras.layers.Dense(1)])
    model.compile("adam", "mse", metrics=["mae"])
data = tf.data.Dataset.from_tensor_slices((tf.random.uniform((16, 4)), tf.ones((16, 1)))).batch(8).repeat()
own = [keras.callbacks.TensorBoard("own")] if "OWN" in os.environ else []
first, last = int(os.environ.get("INITIAL", "0")), int(os.environ.get("EPOCHS", "2"))
model.fit(
    data, steps_per_epoch=2, initial_epoch=first, epochs=last, verbose=0, validation_data=data, validation_steps=1,
    callbacks=own,
)  # fmt: skip
