"""A loop of one's own, alone or on two workers; ends after DIE steps of the first process, by SIGKILL or by SIGNAL."""

import json
import os
import signal

import keras
import numpy as np
import tensorflow as tf

from yurt import data, training

strategy = training.strategy()
several = strategy.num_replicas_in_sync > 1
train = data.read(
    os.environ["DATA"], batch=16, shuffle=True, seed=4, transform=lambda rows: (rows["x"], rows["y"]), check="none"
)
keras.utils.set_random_seed(1)
layers = keras.layers
with strategy.scope():
    model = keras.Sequential(
        [layers.Dense(8, activation="relu"), layers.BatchNormalization(), layers.Dropout(0.3, seed=3), layers.Dense(1)]
    )
    model.build((None, 6))
    optimizer = keras.optimizers.Adam(keras.optimizers.schedules.ExponentialDecay(0.05, 5, 0.9))
    mean = keras.metrics.Mean(name="loss")
    seen = tf.Variable(0, dtype=tf.int64, trainable=False, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)


class Told:
    losses: list[float] = []

    def get_state(self):
        return {"losses": self.losses}

    def set_state(self, state):
        self.losses = state["losses"]


def compute(rows):
    x, y = rows
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(model(x, training=True) - y)) / 16
    grads = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(grads, model.trainable_variables, strict=True))
    mean.update_state(loss)
    seen.assign_add(1)
    return loss


@tf.function
def train_step(rows):
    return strategy.reduce("SUM", strategy.run(compute, args=(rows,)), axis=None)


told = Told()
tracked = {"model": model, "optimizer": optimizer, "mean": mean, "seen": seen, "told": told}
loop = training.Loop(tracked, epochs=4, steps=train.steps, every_steps=3)
batches = loop.data(train)
first, dies_on = loop.step == 0 and loop.epoch == 0, os.environ.get("DIES", "0")
for number, (epoch, step) in enumerate(loop, 1):
    if step == 0:
        mean.reset_state()
    loss = train_step(next(batches))
    if step == train.steps - 1:
        told.losses.append([epoch, float(mean.result())])
    if first and number == int(os.environ.get("DIE", "0")) and os.environ.get("YURT_INDEX", "0") == dies_on:
        os.kill(os.getpid(), getattr(signal, os.environ.get("SIGNAL", "SIGKILL")))
    loop.done(loss=loss)
value = {
    "told": told.losses,
    "seen": int(seen.numpy()),
    "steps": int(np.asarray(optimizer.iterations)),
    "weights": [np.asarray(weight).astype(float).ravel().tolist() for weight in model.get_weights()],
}
print("CASE", json.dumps({"name": "resumed", "value": value}), flush=True)
