"""TensorFlow's standard server for one task of the cluster in TF_CONFIG: serves until it is ended.

Run as a script by the task's own Python; the coordinator (the chief) sends it work.
"""

import json
import os


def main():
    """Serve."""
    import tensorflow as tf

    config = json.loads(os.environ["TF_CONFIG"])
    task = config["task"]
    cluster = tf.train.ClusterSpec(config["cluster"])
    server = tf.distribute.Server(cluster, job_name=task["type"], task_index=task["index"], protocol="grpc")
    print(f"standard server of {task['type']}/{task['index']} serves", flush=True)
    server.join()


main()
