"""The Kubeflow training operator 1.9.3 on a cluster: its own manifests, with the image that is built here."""

from __future__ import annotations

import json
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

NAMESPACE: Final = "kubeflow"
DEPLOYMENT: Final = "deployment/training-operator"
_IMAGE: Final = "localhost/training-operator:1"
#: The webhook refuses it, and nothing else does: its container has not the one name that a TFJob's has.
_WRONG: Final = {
    "apiVersion": "kubeflow.org/v1",
    "kind": "TFJob",
    "metadata": {"name": "is-the-webhook-there", "namespace": "default"},
    "spec": {
        "tfReplicaSpecs": {
            "Worker": {"replicas": 1, "template": {"spec": {"containers": [{"name": "wrong", "image": "none"}]}}}
        }
    },
}

Kubectl = Callable[..., str]


def install(kubectl: Kubectl, manifests: Path, scratch: Path) -> None:
    """Until it runs and its webhook answers: before that a create fails, or is let through unseen."""
    shutil.copytree(manifests, scratch / "manifests", dirs_exist_ok=True)
    image = [{"op": "replace", "path": "/spec/template/spec/containers/0/image", "value": _IMAGE}]
    patch = {"target": {"kind": "Deployment", "name": "training-operator"}, "patch": json.dumps(image)}
    content = {"resources": ["manifests/overlays/standalone"], "patches": [patch]}
    (scratch / "kustomization.yaml").write_text(json.dumps(content))
    kubectl("apply", "--server-side", "-k", scratch)
    wait_until_it_serves(kubectl)


def stop(kubectl: Kubectl) -> None:
    """Until no pod of it is left."""
    kubectl("-n", NAMESPACE, "scale", DEPLOYMENT, "--replicas=0")
    kubectl(
        "-n",
        NAMESPACE,
        "wait",
        "--for=delete",
        "pod",
        "-l",
        "control-plane=kubeflow-training-operator",
        "--timeout=60s",
    )


def start(kubectl: Kubectl) -> None:
    """Until it serves again."""
    kubectl("-n", NAMESPACE, "scale", DEPLOYMENT, "--replicas=1")
    wait_until_it_serves(kubectl)


def wait_until_it_serves(kubectl: Kubectl, within_s: float = 240) -> None:
    """Raises RuntimeError where it does not."""
    kubectl("-n", NAMESPACE, "rollout", "status", DEPLOYMENT, f"--timeout={within_s:.0f}s")
    end = time.monotonic() + within_s
    while "denied the request" not in (said := _answer(kubectl)):
        if time.monotonic() > end:
            raise RuntimeError(f"the training operator's webhook does not answer: {said}")
        time.sleep(0.2)


def _answer(kubectl: Kubectl) -> str:
    """What is said to a wrong TFJob that is created for show."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(_WRONG, file)
        file.flush()
        try:
            return kubectl("create", "--dry-run=server", "--filename", file.name)
        except RuntimeError as error:
            return str(error)
