"""One script for every role of a parameter-server training: it looks into TF_CONFIG and serves, or coordinates.

The loop is written by hand: a straight line is fitted by small steps that the workers take.
"""

import json
import os

import tensorflow as tf

STEPS = int(os.environ.get("STEPS", "200"))


def serve(resolver):
    """A worker or ps: does what the coordinator asks, until it is ended."""
    server = tf.distribute.Server(
        resolver.cluster_spec(), job_name=resolver.task_type, task_index=resolver.task_id, protocol="grpc"
    )
    server.join()


def coordinate(resolver):
    """The chief: owns the model, sends the steps out."""
    strategy = tf.distribute.ParameterServerStrategy(resolver)
    coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
    with strategy.scope():
        slope, offset = tf.Variable(0.0), tf.Variable(0.0)

    def batches():
        x = tf.random.stateless_uniform((256,), seed=(1, 2), minval=-1.0, maxval=1.0)
        return tf.data.Dataset.from_tensors((x, 3.0 * x + 1.0)).repeat()

    iterator = iter(coordinator.create_per_worker_dataset(batches))

    @tf.function
    def step(iterator):
        x, y = next(iterator)
        error = slope * x + offset - y
        slope.assign_sub(0.05 * tf.reduce_mean(error * x))
        offset.assign_sub(0.05 * tf.reduce_mean(error))
        return tf.reduce_mean(error**2)

    for number in range(1, STEPS + 1):
        loss = coordinator.schedule(step, args=(iterator,))
        if number % 50 == 0:
            coordinator.join()
            print(f"{number}/{STEPS} - loss: {loss.fetch():.4f}", flush=True)
    coordinator.join()
    folder = os.environ.get("YURT_MODEL_DIR", "model")
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "line.json"), "w", encoding="utf-8") as file:
        json.dump({"slope": float(slope.numpy()), "offset": float(offset.numpy())}, file)
    print(f"y = {slope.numpy():.2f} x + {offset.numpy():.2f} (the truth: 3 x + 1)", flush=True)


def main():
    """Serve or coordinate, as TF_CONFIG says."""
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    if resolver.task_type in ("worker", "ps"):
        serve(resolver)
    else:
        coordinate(resolver)


if __name__ == "__main__":
    main()
