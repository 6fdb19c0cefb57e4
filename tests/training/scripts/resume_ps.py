"""A parameter-server cluster. In the first generation the chief ends after DIE steps: killed, or TERM by SIGTERM."""

import json
import os
import signal

import numpy as np

from yurt import data, training

keras = __import__(os.environ.get("KERAS", "keras"))
own_loop = os.environ.get("LOOP") == "1"
strategy = training.strategy()  # on the other tasks this serves and never returns
train = data.read(
    os.environ["DATA"], batch=16, shuffle=True, seed=4, transform=lambda rows: (rows["x"], rows["y"]), check="none"
)
keras.utils.set_random_seed(1)
layers = keras.layers
with strategy.scope():
    model = keras.Sequential([layers.Dense(8, activation="relu"), layers.Dropout(0.3, seed=3), layers.Dense(1)])
    model.build((None, 6))
    optimizer = keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.05, 5, 0.9))
    model.compile(optimizer, "mse", metrics=["mae"])
first = os.environ["YURT_GENERATION"] == "0"


def die(steps):
    if first and steps == int(os.environ.get("DIE", "0")):
        os.kill(os.getpid(), signal.SIGTERM if os.environ.get("TERM_CHIEF") else signal.SIGKILL)


class Die(keras.callbacks.Callback):
    steps = 0

    def __init__(self):
        super().__init__()
        self._supports_tf_logs = True  # tf_keras refuses others under parameter servers

    def on_train_batch_end(self, batch, logs=None):
        self.steps += 1
        die(self.steps)


if own_loop:
    import tensorflow as tf

    coordinator = training.coordinator()
    with strategy.scope():
        loss_sum = keras.metrics.Sum(name="loss_sum")
        optimizer.build(model.trainable_variables)

    @tf.function
    def step(batches):
        def compute(rows):
            x, y = rows
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(x, training=True) - y))
            optimizer.apply_gradients(
                zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
            )
            loss_sum.update_state(loss)

        strategy.run(compute, args=(next(batches),))

    loop = training.Loop(
        {"model": model, "optimizer": optimizer, "loss_sum": loss_sum}, epochs=3, steps=train.steps, every_steps=4
    )
    batches = loop.data(train)
    for done, _ in enumerate(loop, 1):
        coordinator.schedule(step, args=(batches,))
        die(done)
        loop.done()
    history = {"loss": [float(loss_sum.result())]}
else:
    checkpoint = training.Checkpoint(every_steps=4)
    history = model.fit(
        checkpoint.resume(train), steps_per_epoch=train.steps, epochs=3, callbacks=[checkpoint, Die()], verbose=0
    ).history
value = {
    "history": {name: [float(value) for value in values] for name, values in history.items()},
    "steps": int(np.asarray(model.optimizer.iterations)),
    "weights": [np.asarray(weight).astype(float).ravel().tolist() for weight in model.get_weights()],
}
print("CASE", json.dumps({"name": "resumed", "value": value}), flush=True)
