"""The script that every launcher starts: legacy Keras on two workers, with moments written for the benchmark.

It knows its launcher only by TF_CONFIG. What it takes from the environment:

    BENCH_MARKS     folder for worker-0.json and worker-1.json: moments in Unix time, and the last loss
    BENCH_STEPS     steps to train, in epochs of at most 150
    BENCH_FAIL      worker 1 ends at step 20: `os._exit`, `sys.exit` or `raise`
    BENCH_LINES_S   print a line with the step and the loss this often, in seconds
"""

import json
import os
import sys
import threading
import time
from pathlib import Path

STARTED = time.time()
BATCH, WINDOW, VALUES = 256, 36, 10
FAIL_AT = 20
EPOCH_STEPS = 150


class Marks:
    """Moments of one worker, in a file."""

    def __init__(self, started):
        index = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
        self.index = int(index)
        self.values = {"started": started, "pid": os.getpid()}

    def add(self, **values):
        """Write what is known by now, whole."""
        self.values.update(values)
        path = Path(os.environ["BENCH_MARKS"], f"worker-{self.index}.json")
        part = path.with_suffix(".part")
        part.write_text(json.dumps(self.values))
        part.replace(path)


def windows():
    """Waves with noise, as much alike as hours of weather."""
    import numpy as np

    rng = np.random.default_rng(0)
    count = 8 * BATCH
    phase = rng.uniform(0, 6.28, size=(count, 1, VALUES))
    hours = np.arange(WINDOW).reshape(1, WINDOW, 1)
    noise = rng.normal(scale=0.1, size=(count, WINDOW, VALUES))
    return (np.sin(hours * 0.26 + phase) + noise).astype("float32")


def compiled(tf):
    """A recurrent autoencoder: GRU 128 and 32, and back."""
    layers = tf.keras.layers
    tf.keras.utils.set_random_seed(1)
    model = tf.keras.Sequential(
        [
            layers.GRU(128, return_sequences=True, input_shape=(WINDOW, VALUES)),
            layers.GRU(32),
            layers.RepeatVector(WINDOW),
            layers.GRU(32, return_sequences=True),
            layers.GRU(128, return_sequences=True),
            layers.Dense(VALUES),
        ]
    )
    model.compile("adam", "mse")
    return model


def watcher(tf, marks, steps):
    """The callback that writes the moments, tells the steps, and fails where it is asked to."""
    way = os.environ.get("BENCH_FAIL") if marks.index == 1 else None
    every_s = float(os.environ.get("BENCH_LINES_S", "0"))
    last = {"step": 0, "loss": 0.0}

    def lines():
        while True:
            time.sleep(every_s)
            print(f"{last['step']}/{steps} - loss: {last['loss']:.5f}", flush=True)

    class Watcher(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, _batch, logs=None):
            last["step"] += 1
            if last["step"] == 1:
                marks.add(first_step=time.time())
                if every_s:
                    threading.Thread(target=lines, daemon=True).start()
            if last["step"] == steps:
                marks.add(last_step=time.time())
            if every_s:
                last["loss"] = float(logs["loss"])
            if way and last["step"] == FAIL_AT:
                marks.add(failed=time.time())
                if way == "os._exit":
                    os._exit(1)
                if way == "sys.exit":
                    sys.exit(1)
                raise RuntimeError("asked to fail")

    return Watcher()


def main(started=None):
    """Train, and leave the moments."""
    marks = Marks(started or time.time())
    import tensorflow as tf

    marks.add(imported=time.time())
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    marks.add(gathered=time.time())
    steps = int(os.environ.get("BENCH_STEPS", "150"))
    epoch_steps = min(steps, EPOCH_STEPS)
    x = windows()
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    data = tf.data.Dataset.from_tensor_slices((x, x)).batch(BATCH, drop_remainder=True).repeat().with_options(options)
    with strategy.scope():
        model = compiled(tf)
    epochs = max(1, steps // epoch_steps)
    history = model.fit(
        data, epochs=epochs, steps_per_epoch=epoch_steps, verbose=2, callbacks=[watcher(tf, marks, steps)]
    )
    loss = float(history.history["loss"][-1])
    print(f"loss {loss:.6f}", flush=True)
    marks.add(trained=time.time(), loss=loss, replicas=strategy.num_replicas_in_sync)


if __name__ == "__main__":
    main(STARTED)
