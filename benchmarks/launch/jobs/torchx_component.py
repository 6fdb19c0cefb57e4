"""The two workers as a TorchX component; TF_CONFIG of each comes out of TorchX's macros."""

import json
import os

from torchx import specs


def workers(script: str = "train.py") -> specs.AppDef:
    """Two workers of one TensorFlow cluster on this machine.

    Args:
        script: what each worker runs
    """
    addresses = [f"127.0.0.1:{os.environ[name]}" for name in ("PORT_0", "PORT_1")]
    task = {"type": "worker", "index": specs.macros.replica_id}
    return specs.AppDef(
        name="launch",
        roles=[
            specs.Role(
                name="worker",
                image=".",
                entrypoint="python",
                args=[script],
                env={"TF_CONFIG": json.dumps({"cluster": {"worker": addresses}, "task": task})},
                num_replicas=2,
            )
        ],
    )
