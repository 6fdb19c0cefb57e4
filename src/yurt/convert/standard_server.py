"""TensorFlow's own server as a command, for systems on which no agent of Yurt's starts it."""

from __future__ import annotations

from typing import Final

_CODE: Final = (
    "import tensorflow as tf; "
    "task = tf.distribute.cluster_resolver.TFConfigClusterResolver(); "
    "tf.distribute.Server(task.cluster_spec(), job_name=task.task_type, task_index=task.task_id).join()"
)
STANDARD_SERVER: Final = ("python", "-c", _CODE)
"""The words."""
