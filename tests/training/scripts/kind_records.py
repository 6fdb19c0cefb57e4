"""Reads TFRecord files, keeps the weights and the model under paths that only the command line knows.

Arguments: the files' pattern, and where weights, a model to serve and a whole model go; Keras 3 takes only the last.
"""

import json
import sys

import tensorflow as tf

BATCH = 32
pattern, weights, served, whole = sys.argv[1:5]
strategy = tf.distribute.MultiWorkerMirroredStrategy()


def parse(rows):
    parsed = tf.io.parse_example(
        rows,
        {
            **{name: tf.io.FixedLenFeature([1], tf.float32) for name in ("a", "b")},
            "y": tf.io.FixedLenFeature([1], tf.float32),
        },
    )
    return parsed, parsed.pop("y")


data = tf.data.TFRecordDataset(sorted(tf.io.gfile.glob(pattern))).cache().shuffle(256, seed=1).repeat()
data = data.batch(BATCH).map(parse).prefetch(tf.data.AUTOTUNE)


def build():
    inputs = {name: tf.keras.layers.Input((1,), name=name) for name in ("a", "b")}
    both = tf.keras.layers.Concatenate()(list(inputs.values()))
    model = tf.keras.Model(inputs, tf.keras.layers.Dense(1)(both))
    model.compile(tf.keras.optimizers.Adam(0.1), "mse")
    return model


tf.keras.utils.set_random_seed(3)
with strategy.scope():
    model = build()
history = model.fit(data, epochs=3, steps_per_epoch=8, validation_data=data, validation_steps=2).history
model.save_weights(weights)
model.save(served)
tf.keras.models.save_model(model, whole)
model.load_weights(weights)
rows = {name: tf.constant([[0.25], [0.5]]) for name in ("a", "b")}
loaded = tf.saved_model.load(served)
equal = float(tf.reduce_max(tf.abs(model(rows) - loaded.serve(rows))))
told = {"loss": history["loss"], "apart": equal, "by": type(model).__module__.partition(".")[0]}
print("TOLD", json.dumps(told), flush=True)
