"""The objects of a proof: an Indexed Job of two pods with a service, and a claim with a pod that writes to it. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

PORT: Final = 8555
#: Of the pods and the claim, so that what a killed proof leaves is found.
LABEL: Final = "yurt/proof"
_CLAIM_SIZE: Final = "16Mi"
_KEEP_S: Final = 600
_PYTHON: Final = (
    'python=$(command -v python3 || command -v python) || { echo "the image has no python3" >/dev/termination-log; '
    'exit 127; }; exec "$python" -c "$PROOF"'
)
#: By the shell alone: an image needs nothing else.
_WRITE: Final = 'echo written >/claim/line && read -r line </claim/line && [ "$line" = written ]'

Value = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Proof:
    """What is asked for. `name` is that of all objects, `within_s` the time that the pods have."""

    name: str
    namespace: str
    image: str
    within_s: int = 120
    node_selector: tuple[tuple[str, str], ...] = ()
    pull_secrets: tuple[str, ...] = ()
    domain: str = "svc"


def job(proof: Proof) -> Value:
    """Two pods on two nodes, if there are two; it owns everything else, and goes by itself should nobody remove it."""
    env = {
        "PROOF": Path(__file__).with_name("proving_pod.py").read_text(encoding="utf-8"),
        "PROOF_HOST": f"{proof.name}-{{}}.{proof.name}.{proof.namespace}.{proof.domain}",
        "PROOF_PORT": str(PORT),
        "PROOF_WITHIN_S": str(proof.within_s),
    }
    variables: list[Value] = [{"name": key, "value": value.replace("$(", "$$(")} for key, value in env.items()]
    variables.append({"name": "PROOF_NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}})
    apart = {
        "maxSkew": 1,
        "topologyKey": "kubernetes.io/hostname",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {LABEL: proof.name}},
    }
    pod = {
        **_pod(proof, _PYTHON, variables),
        "subdomain": proof.name,
        "topologySpreadConstraints": [apart],
    }
    spec = {"completions": 2, "parallelism": 2, "completionMode": "Indexed"}
    return _job(proof, proof.name, pod, spec)


def service(proof: Proof) -> Value:
    """By which each pod has a name, also before it is ready."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": proof.name, "namespace": proof.namespace, "labels": _labels(proof)},
        "spec": {
            "clusterIP": "None",
            "publishNotReadyAddresses": True,
            "selector": {LABEL: proof.name},
            "ports": [{"name": "proof", "port": PORT}],
        },
    }


def claim(proof: Proof) -> Value:
    """That names no class."""
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": proof.name, "namespace": proof.namespace, "labels": _labels(proof)},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": _CLAIM_SIZE}}},
    }


def claiming_job(proof: Proof) -> Value:
    """A pod that writes to the claim: many a class makes its volume only when a pod wants it."""
    pod = _pod(proof, _WRITE, [])
    pod["volumes"] = [{"name": "claim", "persistentVolumeClaim": {"claimName": proof.name}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "claim", "mountPath": "/claim"}]
    return _job(proof, f"{proof.name}-claim", pod, {})


def owned(value: Value, uid: str, proof: Proof) -> Value:
    """The object, so that it goes with the proof's Job."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": proof.name, "uid": uid}
    return {**value, "metadata": {**value["metadata"], "ownerReferences": [owner]}}


def _job(proof: Proof, name: str, pod: Value, spec: Value) -> Value:
    labels = {**_labels(proof), LABEL: name}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": proof.namespace, "labels": _labels(proof)},
        "spec": {
            **spec,
            "backoffLimit": 0,
            "activeDeadlineSeconds": 2 * proof.within_s,
            "ttlSecondsAfterFinished": _KEEP_S,
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    }


def _pod(proof: Proof, script: str, env: list[Value]) -> Value:
    """As the restricted level wants it, small, and with all that a quota may ask to be said."""
    size = {"cpu": "100m", "memory": "64Mi"}
    container = {
        "name": "proof",
        "image": proof.image,
        "command": ["/bin/sh", "-c", script],
        "env": env,
        "resources": {"requests": size, "limits": size},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    return {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "automountServiceAccountToken": False,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": 65534,
            "runAsGroup": 65534,
            "fsGroup": 65534,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "nodeSelector": dict(proof.node_selector),
        "imagePullSecrets": [{"name": each} for each in proof.pull_secrets],
        "containers": [container],
    }


def _labels(proof: Proof) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "yurt",
        "app.kubernetes.io/managed-by": "yurt",
        "app.kubernetes.io/component": "proof",
        LABEL: proof.name,
    }
