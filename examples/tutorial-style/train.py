"""Multi-worker training as TensorFlow's guides teach it: Keras, TF_CONFIG, and nothing of Yurt.

It learns to tell small pictures of bars apart: upright, level, slanting.
"""

import json
import os

import keras
import numpy as np
import tensorflow as tf

PER_WORKER_BATCH = 32
EPOCHS = int(os.environ.get("EPOCHS", "3"))
SIZE = 12


def pictures(count, seed):
    """Noisy pictures (count, 12, 12, 1) and what is on each: 0, 1 or 2."""
    random = np.random.default_rng(seed)
    kinds = random.integers(3, size=count)
    x = random.normal(0, 0.3, size=(count, SIZE, SIZE, 1)).astype("float32")
    for picture, kind in zip(x, kinds, strict=True):
        at = random.integers(2, SIZE - 2)
        if kind == 0:
            picture[:, at] += 1
        elif kind == 1:
            picture[at, :] += 1
        else:
            picture[np.arange(SIZE), (np.arange(SIZE) + at) % SIZE] += 1
    return x, kinds


def dataset(batch, count=1536, seed=0):
    """Endless shuffled batches."""
    x, y = pictures(count, seed)
    return tf.data.Dataset.from_tensor_slices((x, y)).shuffle(count, seed=1).repeat().batch(batch)


def build_and_compile():
    """A small convolutional network."""
    model = keras.Sequential(
        [
            keras.layers.Input((SIZE, SIZE, 1)),
            keras.layers.Conv2D(8, 3, activation="relu"),
            keras.layers.MaxPooling2D(),
            keras.layers.Flatten(),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(3),
        ]
    )
    model.compile(
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        optimizer=keras.optimizers.Adam(0.003),
        metrics=["accuracy"],
    )
    return model


def main():
    """Train on however many workers TF_CONFIG names; all save, to the same path."""
    workers = len(json.loads(os.environ["TF_CONFIG"])["cluster"]["worker"])
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    batch = PER_WORKER_BATCH * workers
    with strategy.scope():
        model = build_and_compile()
    model.fit(
        dataset(batch),
        epochs=EPOCHS,
        steps_per_epoch=1536 // batch,
        validation_data=dataset(batch, 512, seed=9),
        validation_steps=512 // batch,
        callbacks=[keras.callbacks.BackupAndRestore("backup")],
    )
    model.save("saved/bars.keras")


if __name__ == "__main__":
    main()
