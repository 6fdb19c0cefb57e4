"""A training loop of its own, as people wrote them for Keras 2: one role branches, checkpoints go to a folder each.

Its first argument is where the deciding task puts its checkpoints.
"""

import json
import os
import sys

import numpy as np
import tensorflow as tf

EPOCHS, STEPS, BATCH = 3, 8, 32
config = json.loads(os.environ["TF_CONFIG"])
workers = len(config["cluster"]["worker"])
strategy = tf.distribute.experimental.MultiWorkerMirroredStrategy()
task_type, task_id = strategy.cluster_resolver.task_type, strategy.cluster_resolver.task_id
is_chief = task_type == "chief" or (task_id == 0 and "chief" not in config["cluster"])


def rows(context):
    x = np.random.RandomState(0).rand(256, 8).astype("float32")
    data = tf.data.Dataset.from_tensor_slices((x, x.sum(axis=1, keepdims=True)))
    data = data.shard(context.num_input_pipelines, context.input_pipeline_id).repeat()
    return data.batch(context.get_per_replica_batch_size(BATCH))


tf.keras.utils.set_random_seed(3)
with strategy.scope():
    model = tf.keras.Sequential(
        [tf.keras.layers.Dense(4, activation="relu", input_shape=(8,)), tf.keras.layers.Dense(1)]
    )
    optimizer = tf.keras.optimizers.RMSprop(learning_rate=0.01)
    error = tf.keras.metrics.MeanAbsoluteError(name="error")
    squares = tf.keras.losses.MeanSquaredError(reduction=tf.keras.losses.Reduction.NONE)


@tf.function
def step(iterator):
    def replica(inputs):
        x, y = inputs
        with tf.GradientTape() as tape:
            out = model(x, training=True)
            loss = tf.nn.compute_average_loss(squares(y, out), global_batch_size=BATCH)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        error.update_state(y, out)
        return loss

    losses = strategy.run(replica, args=(next(iterator),))
    return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)


epoch = tf.Variable(0, dtype=tf.int64)
folder = sys.argv[1] if len(sys.argv) > 1 else os.environ["SHARED"]
own = folder if is_chief else os.path.join(folder, f"worker-{task_id}")
checkpoints = tf.train.CheckpointManager(tf.train.Checkpoint(model=model, epoch=epoch), own, max_to_keep=1)
data = iter(strategy.distribute_datasets_from_function(rows))
shown = []
while epoch.numpy() < EPOCHS:
    loss = sum(float(step(data)) for _ in range(STEPS)) / STEPS
    shown.append([loss, float(error.result())])
    error.reset_states()
    checkpoints.save()
    if not is_chief:
        tf.io.gfile.rmtree(own)
    epoch.assign_add(1)
value = [shown, [float(tf.reduce_sum(weight)) for weight in model.weights]]
print("CASE", json.dumps({"name": "loop", "by": type(model).__module__.partition(".")[0], "value": value}), flush=True)
