"""Four epochs with BackupAndRestore; the worker that DIE names kills itself in the third, as a lost machine would."""

import json
import os
import signal

import numpy as np
import tensorflow as tf

keras = tf.keras
index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
strategy = tf.distribute.MultiWorkerMirroredStrategy()
x = np.random.RandomState(0).rand(512, 20).astype("float32")
y = (x.sum(1) > x.sum(1).mean()).astype("int32")
keras.utils.set_random_seed(1)
layers = keras.layers
with strategy.scope():
    model = keras.Sequential(
        [layers.Input((20,)), layers.Dense(16), layers.BatchNormalization(), layers.Dense(2, activation="softmax")]
    )
    model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(64, drop_remainder=True).with_options(options)


class Die(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        self.epoch = epoch

    def on_train_batch_end(self, batch, logs=None):
        if os.environ.get("DIE") == str(index) and self.epoch == 2 and batch == 3:
            os.kill(os.getpid(), signal.SIGKILL)


folder = os.environ["SHARED"] if os.environ.get("ONE_FOLDER") == "1" else "backup"
history = model.fit(data, epochs=4, callbacks=[keras.callbacks.BackupAndRestore(folder), Die()], verbose=0).history
value = {
    "epochs": len(history["loss"]),
    "steps": int(model.optimizer.iterations.numpy()),
    "size": sum(float(np.abs(weight).sum()) for weight in model.get_weights()),
    "loss": history["loss"][-1],
}
print("CASE", json.dumps({"name": "resumed", "value": value}), flush=True)
