"""The coordinator of a parameter-server training: the chief alone runs this; workers and ps run TensorFlow's server.

It fits a small network to a curve, saves it, and says how far off it is.
"""

import os

import numpy as np
import tensorflow as tf

EPOCHS = int(os.environ.get("EPOCHS", "8"))
STEPS = 50


def data(_context=None):
    """Endless batches of a noisy curve. Under this strategy `fit` wants endless data and a number of steps."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-2, 2, size=(4096, 1)).astype("float32")
    y = np.sin(2 * x) + rng.normal(scale=0.05, size=x.shape).astype("float32")
    return tf.data.Dataset.from_tensor_slices((x, y)).shuffle(4096, seed=1).repeat().batch(64).prefetch(2)


def main():
    """Train on the cluster that TF_CONFIG describes."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    with strategy.scope():
        tf.keras.utils.set_random_seed(1)
        model = tf.keras.Sequential(
            [
                tf.keras.layers.Dense(32, activation="tanh", input_shape=(1,)),
                tf.keras.layers.Dense(32, activation="tanh"),
                tf.keras.layers.Dense(1),
            ]
        )
        model.compile(tf.keras.optimizers.Adam(0.01), "mse")
    checkpoints = os.environ.get("YURT_CHECKPOINT_DIR", "checkpoints")
    backup = tf.keras.callbacks.BackupAndRestore(checkpoints)
    model.fit(
        tf.keras.utils.experimental.DatasetCreator(data),
        epochs=EPOCHS,
        steps_per_epoch=STEPS,
        verbose=2,
        callbacks=[backup],
    )
    folder = os.environ.get("YURT_MODEL_DIR", "model")
    os.makedirs(folder, exist_ok=True)
    model.save(os.path.join(folder, "curve.keras"))
    x = np.linspace(-2, 2, 9, dtype="float32")[:, None]
    off = np.abs(np.asarray(model(x)) - np.sin(2 * x)).max()
    print(f"the curve is met within {off:.3f} everywhere", flush=True)


if __name__ == "__main__":
    main()
