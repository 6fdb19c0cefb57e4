"""A task that trains a tiny model in steps without end, and says when it came how far: `mark PART GENERATION TIME`.

Its own loop, so that TensorFlow alone can run it, started by hand: Keras 3's `fit` cannot train several workers without
Yurt. Times are Unix time; the nodes are processes of one machine here, so all have the same clock.
"""

import os
import time


def mark(part):
    print("mark", part, os.environ.get("YURT_GENERATION", "0"), time.time(), flush=True)


mark("line")
import tensorflow as tf  # noqa: E402 - this import is a part of what is measured

mark("tensorflow")
strategy = tf.distribute.MultiWorkerMirroredStrategy()
mark("strategy")
with strategy.scope():
    weights = tf.Variable(tf.zeros((4, 1)))
rows = tf.random.stateless_normal((8, 4), seed=(1, 2))


def descend(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((x @ weights - tf.reduce_sum(x, 1, keepdims=True)) ** 2)
    together = tf.distribute.get_replica_context().all_reduce("mean", tape.gradient(loss, weights))
    weights.assign_sub(0.01 * together)


@tf.function
def step():
    strategy.run(descend, args=(rows,))


step()
mark("step")
while True:
    step()
    time.sleep(0.02)
