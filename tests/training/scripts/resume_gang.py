"""Two workers. With SEED one of them kills itself in each generation, at a random moment after a random step."""

import json
import os
import random
import signal
import sys
import threading
import time

import numpy as np

from yurt import data, training

keras = __import__(os.environ.get("KERAS", "keras"))
legacy = keras.__name__ == "tf_keras"
index, generation = int(os.environ["YURT_INDEX"]), int(os.environ["YURT_GENERATION"])
seed, deaths = os.environ.get("SEED"), int(os.environ.get("DEATHS", "10"))
strategy = training.strategy()
train = data.read(
    os.environ["DATA"], batch=16, shuffle=True, seed=4, transform=lambda rows: (rows["x"], rows["y"]), check="none"
)
keras.utils.set_random_seed(1)
layers = keras.layers
with strategy.scope():
    dropout = [] if legacy else [layers.Dropout(0.3, seed=3)]
    model = keras.Sequential(
        [layers.Dense(8, activation="relu"), layers.BatchNormalization(), *dropout, layers.Dense(1)]
    )
    model.build((None, 6))
    model.compile(keras.optimizers.Adam(0.05), "mse", metrics=["mae"])

chance = random.Random(f"{seed} {generation}")
victim, dies_after, later_s = chance.randrange(2), chance.randint(3, 12), chance.choice([0, chance.uniform(0, 0.03)])


class Die(keras.callbacks.Callback):
    steps = 0

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
        if "TERM" in os.environ:
            time.sleep(0.02)
            if self.steps == 30 and os.environ["TERM"] == str(index) and not generation:
                os.kill(os.getpid(), signal.SIGTERM)
        if seed is not None and generation < deaths and index == victim and self.steps == dies_after:
            print("dies after", dies_after, "steps and", later_s, "s", flush=True)
            if later_s:
                threading.Timer(later_s, os.kill, (os.getpid(), signal.SIGKILL)).start()
            else:
                os.kill(os.getpid(), signal.SIGKILL)


checkpoint = training.Checkpoint(every_steps=2)
slower = keras.callbacks.ReduceLROnPlateau("loss", factor=0.7, patience=1, min_delta=0.02)
callbacks = [checkpoint, slower, Die()]
history = model.fit(
    checkpoint.resume(train), steps_per_epoch=train.steps, epochs=7, callbacks=callbacks, verbose=0
).history
value = {
    "history": {name: [float(value) for value in values] for name, values in history.items()},
    "steps": int(model.optimizer.iterations.numpy()),
    "weights": [np.asarray(weight).astype(float).ravel().tolist() for weight in model.get_weights()],
}
print("CASE", json.dumps({"name": "resumed", "value": value}), flush=True)
sys.stdout.flush()
