"""`fit` with a pipeline and a step that each sleep for a known time; prints what was told and what is true.

INPUT_S and STEP_S are the seconds of a batch and of a step; SLOW_TASK is the one task whose input is slow. A step sleeps
in its loss, which has to wait for the batch. Nothing prefetches, so `fit` waits for every sleep of its input.
"""

import json
import os
import pathlib
import time

import tensorflow as tf

keras = tf.keras
input_s, step_s = float(os.environ.get("INPUT_S", "0")), float(os.environ.get("STEP_S", "0"))
task = json.loads(os.environ.get("TF_CONFIG", "{}")).get("task", {"index": 0})
if os.environ.get("SLOW_TASK", str(task["index"])) != str(task["index"]):
    input_s = 0
strategy = tf.distribute.MultiWorkerMirroredStrategy() if "WORKERS" in os.environ else tf.distribute.get_strategy()
slept = []  # seconds that each batch really took: on a busy machine more than was asked for


@tf.autograph.experimental.do_not_convert
def sleep(seconds, value, noted=None):
    def go_to_sleep(_):
        begun = time.perf_counter()
        time.sleep(seconds)
        if noted is not None:
            noted.append(time.perf_counter() - begun)
        return True

    return tf.py_function(go_to_sleep, [tf.reshape(value, [-1])[0]], tf.bool) if seconds else tf.constant(True)


def slow(x, y):
    with tf.control_dependencies([sleep(input_s, x, slept)]):
        return tf.identity(x), y


def loss(y, predicted):
    with tf.control_dependencies([sleep(step_s, y)]):
        return tf.reduce_mean(tf.square(predicted - y), axis=-1)


class Clock(keras.callbacks.Callback):
    """Seconds of all steps but the first, validation not counted."""

    total_s = steps = 0

    def on_epoch_begin(self, epoch, logs=None):
        self.at = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        now = time.perf_counter()
        if self.steps:
            self.total_s += now - self.at
        self.steps, self.at = self.steps + 1, now


x = tf.reshape(tf.range(8 * 4 * 15, dtype=tf.float32) / 960, (-1, 4))
data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(8).map(slow)
options = tf.data.Options()
options.experimental_optimization.inject_prefetch = False
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
data = data.with_options(options)
with strategy.scope():
    keras.utils.set_random_seed(1)
    model = keras.Sequential([keras.layers.Input((4,)), keras.layers.Dense(2), keras.layers.Dense(1)])
    model.compile(
        "sgd", loss, run_eagerly="EAGER" in os.environ, steps_per_execution=int(os.environ.get("EXECUTION", "1"))
    )
clock = Clock()
losses = model.fit(data, epochs=2, verbose=0, callbacks=[clock], validation_data=data.take(2)).history["loss"]
file = os.environ.get("YURT_PROGRESS_FILE")
told = json.loads(pathlib.Path(file).read_text()) if file else {}
true = sum(slept) / max(len(slept), 1) * (clock.steps - 1) / clock.total_s
losses += model.fit(data.take(4), verbose=0).history["loss"]
wrapped = hasattr(model.train_function, "yurt_inner")
case = {"name": "fit", "losses": losses, "told": told.get("input_wait"), "true": true, "wrapped": wrapped}
print("CASE " + json.dumps(case), flush=True)
