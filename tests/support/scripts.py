"""Training scripts for tests: real TensorFlow, tiny. They know nothing of Yurt but two folders."""

#: Multi-worker training with checkpoints; prints steps and loss at the end. EPOCHS and EPOCH_S by environment.
MULTI_WORKER = """
import os, sys, time
import numpy as np
import tensorflow as tf

strategy = tf.distribute.MultiWorkerMirroredStrategy()
rng = np.random.default_rng(0)
x = rng.normal(size=(320, 8)).astype("float32")
y = x @ rng.normal(size=(8, 1)).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(64)
options = tf.data.Options()
options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
with strategy.scope():
    tf.keras.utils.set_random_seed(1)
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Dense(16, activation="relu", input_shape=(8,)), layers.Dense(1)])
    model.compile("adam", "mse")


class Slow(tf.keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        time.sleep(float(os.environ.get("EPOCH_S", "0")))


callbacks = [tf.keras.callbacks.BackupAndRestore(os.environ["YURT_CHECKPOINT_DIR"]), Slow()]
history = model.fit(
    data.with_options(options), epochs=int(os.environ.get("EPOCHS", "4")), verbose=2, callbacks=callbacks
)
print("steps", int(model.optimizer.iterations.numpy()), "loss", history.history["loss"][-1], flush=True)
model.save(os.path.join(os.environ["YURT_MODEL_DIR"], "model.keras"))
"""

#: A coordinator: chief, ps and workers; the chief trains, the others serve. UNTIL names a file that ends it (TensorFlow
#: 2.21's chief may hang at its exit if it ends while a worker is coming back).
COORDINATOR = """
import os
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    total = tf.Variable(0.0)


@tf.function
def step():
    total.assign_add(1.0)
    return total


import time
enough = os.environ.get("UNTIL")  # a file
steps = 0
while steps < 20 or (enough and not os.path.exists(enough)):
    coordinator.schedule(step)
    steps += 1
    time.sleep(0.05)
print("scheduled", steps, flush=True)
coordinator.join()
print("total", float(total.numpy()), flush=True)
with open(os.path.join(os.environ["YURT_MODEL_DIR"], "total.txt"), "w") as file:
    file.write(str(float(total.numpy())))
"""

#: The same in one script that branches on its role.
BRANCHING = (
    """
import json, os
task = json.loads(os.environ["TF_CONFIG"])["task"]
if task["type"] in ("worker", "ps"):
    import tensorflow as tf
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=task["type"], task_index=task["index"], protocol="grpc"
    )
    server.join()
"""
    + COORDINATOR
)
