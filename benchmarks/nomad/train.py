"""What the benchmark's tasks train: a tiny model in small steps without end; each writes down its moments.

``BENCH_MARKS`` is the folder for ``worker-0.1.json`` (task and generation): moments in Unix time. The nodes are
processes of one machine here, so they see the same folder and the same clock.
"""

import json
import os
import time
from pathlib import Path

MOMENTS = {"script": time.time()}
REST_S = 0.02


def mark(name):
    MOMENTS[name] = time.time()
    task = f"worker-{os.environ['YURT_INDEX']}.{os.environ['YURT_GENERATION']}.json"
    path = Path(os.environ["BENCH_MARKS"], task)
    part = path.with_suffix(".part")
    part.write_text(json.dumps(MOMENTS))
    part.replace(path)


mark("script")
import numpy as np  # noqa: E402 - these imports are what is measured
import tensorflow as tf  # noqa: E402

mark("tensorflow")


class Steps(tf.keras.callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):  # noqa: ARG002 - Keras calls it so
        if "step" not in MOMENTS:
            mark("step")
            print("first step", flush=True)
        time.sleep(REST_S)


strategy = tf.distribute.MultiWorkerMirroredStrategy()
mark("strategy")
x = np.linspace(-1, 1, 256, dtype="float32").reshape(64, 4)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
data = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).repeat().batch(8)
model.fit(data, steps_per_epoch=1_000_000, epochs=1, verbose=0, callbacks=[Steps()])
