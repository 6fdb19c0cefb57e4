"""What is learned, and the model that learns it."""

import keras
import numpy as np
import tensorflow as tf

BATCH = 64  # of all workers together


def data(seed=0):
    """One epoch of batches of a noisy curve; every worker takes its part of each."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-2, 2, size=(2048, 1)).astype("float32")
    y = np.sin(2 * x) + rng.normal(scale=0.05, size=x.shape).astype("float32")
    return tf.data.Dataset.from_tensor_slices((x, y)).batch(BATCH)


def build():
    """A small network, compiled."""
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Input((1,)), keras.layers.Dense(32, activation="tanh"), keras.layers.Dense(1)]
    model = keras.Sequential(layers)
    model.compile(keras.optimizers.Adam(0.01), "mse")
    return model
