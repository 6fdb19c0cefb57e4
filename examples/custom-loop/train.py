"""A training loop of one's own on several workers: what `fit` would do, by hand, and it can be killed at any step."""

import os

import keras
import numpy as np
import tensorflow as tf

from yurt import training

EPOCHS = int(os.environ.get("EPOCHS", "6"))
BATCH = 64  # of all workers together


def curve():
    """One epoch of batches of a noisy curve."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(2048, 1)).astype("float32")
    y = np.sin(2 * x) + rng.normal(scale=0.05, size=x.shape).astype("float32")
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH, drop_remainder=True)


def main():
    """Train, and save what the leader has: all have the same."""
    strategy = training.strategy()
    data = curve()
    with strategy.scope():
        keras.utils.set_random_seed(1)
        model = keras.Sequential(
            [keras.layers.Input((1,)), keras.layers.Dense(32, activation="tanh"), keras.layers.Dense(1)]
        )
        optimizer = keras.optimizers.Adam(0.01)
        optimizer.build(model.trainable_variables)

    def step(x, y):
        """One worker's part: its share of the mean over the whole batch, so that gradients add up."""
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((model(x, training=True) - y) ** 2) / BATCH
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    @tf.function
    def train_step(batch):
        return strategy.reduce("SUM", strategy.run(step, args=batch), axis=None)

    steps = int(data.cardinality())
    loop = training.Loop({"model": model, "optimizer": optimizer}, epochs=EPOCHS, steps=steps, every_s=60)
    batches = loop.data(data)
    for epoch, number in loop:
        loss = train_step(next(batches))
        loop.done(loss=loss)
        if number + 1 == steps:
            print(f"epoch {epoch + 1}: loss {float(loss):.4f}", flush=True)
    training.save(model, "curve.keras")


if __name__ == "__main__":
    main()
