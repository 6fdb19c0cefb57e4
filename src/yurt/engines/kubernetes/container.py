"""The container in which Yurt's script runs: a task's, or the keeper's."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, Final

from yurt.contract.spec import RunSpec
from yurt.engines.kubernetes import names, room, security
from yurt.engines.kubernetes.merging import merged, plain
from yurt.engines.kubernetes.options import KubernetesOptions, PodOptions

#: The training operator gives TF_CONFIG to the container of this name alone.
TASK: Final = "tensorflow"

CODE: Final = "/yurt/code"
RUN: Final = "/yurt/run"
LOCAL: Final = "/yurt/local"
CHECKPOINTS: Final = "/yurt/checkpoints"
SHM: Final = "/dev/shm"  # noqa: S108 - where programs look for shared memory
_START: Final = f"{CODE}/start.py"
#: Of /dev/shm, of which containers get 64 MiB: too little for NCCL. Only what is used takes memory.
_SHM_BYTES: Final = "1Gi"
#: Kubernetes' own variable of a pod, by the field that it comes from.
_FIELDS: Final = {
    "YURT_POD": "metadata.name",
    "YURT_POD_UID": "metadata.uid",
    "YURT_POD_IP": "status.podIP",
    "YURT_NODE": "spec.nodeName",
    "YURT_NAMESPACE": "metadata.namespace",
}
_PORTS: Final = {
    False: {"name": names.PORT_NAME, "containerPort": names.PORT},
    True: {"name": names.STORE_PORT_NAME, "containerPort": names.STORE_PORT},
}
#: Becomes the agent. Any shell understands it. -I -S: neither variables nor site-packages change the agent.
_SCRIPT: Final = """\
python=$(command -v {pythons}) || {{ echo 'yurt: the image has no {words}' >&2; exit 127; }}
exec "$python" -I -S {start} "$@"
"""


def command(python: str | None, role: str) -> list[str]:
    """Starts the script for a role by the image's Python."""
    if python is None:
        script = _SCRIPT.format(
            pythons="python3 || command -v python", words="Python (python3 or python) on its PATH", start=_START
        )
    else:
        script = _SCRIPT.format(pythons=shlex.quote(python), words=python.replace("'", ""), start=_START)
    return [literal(each) for each in ("/bin/sh", "-c", script, "yurt", role)]


def literal(text: str) -> str:
    """Text as it stands where Kubernetes puts in variables, which are written ``$(NAME)``; ``$$`` is a ``$``."""
    return text.replace("$", "$$")


def container(
    run: RunSpec, role: str, amounts: Mapping[str, Any], options: KubernetesOptions, index_label: str | None
) -> dict[str, Any]:
    """The container of a role's tasks, or of the keeper. What the user says of it in Kubernetes' words goes over it."""
    own = options.of(role)
    found: dict[str, Any] = {
        "name": names.KEEPER if role == names.KEEPER else TASK,
        "image": (options.keeper_image if role == names.KEEPER else None) or run.image,
        "command": command(options.python, role),
        "env": [*_fields(index_label), *plain(own.env)],
        "envFrom": plain(own.env_from),
        "ports": [_PORTS[role == names.KEEPER]],
        "resources": dict(amounts),
        "volumeMounts": _mounts(run.run_id, role, options),
        "imagePullPolicy": own.image_pull_policy,
        "securityContext": security.of_container(own.security_context, restricted=options.restricted),
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    whole: dict[str, Any] = merged({name: value for name, value in found.items() if value}, own.container)
    return whole


def _fields(index_label: str | None) -> list[dict[str, Any]]:
    """Variables that say where this is; `index_label` is that of the task's index."""
    paths = dict(_FIELDS)
    if index_label is not None:
        paths["YURT_INDEX"] = f"metadata.labels['{index_label}']"
    return [{"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}} for name, path in paths.items()]


def volumes(run_id: str, role: str, options: KubernetesOptions) -> list[dict[str, Any]]:
    """What a pod mounts.

    Of the config maps only the first is always there: how many more there are is known when the files are packed.
    """
    own = options.of(role)
    pieces = [
        {"configMap": {"name": names.code(run_id, piece), **({"optional": True} if piece else {})}}
        for piece in range(room.MOST_PIECES)
    ]
    found: list[dict[str, Any]] = [
        {"name": "yurt-code", "projected": {"sources": pieces}},
        {"name": "yurt-run", "secret": {"secretName": names.order(run_id)}},
        {"name": "yurt-local", "emptyDir": {}},
    ]
    if _shares_checkpoints(role, options):
        found.append({"name": "yurt-checkpoints", "persistentVolumeClaim": {"claimName": options.checkpoint_claim}})
    if _has_shm(role, own):
        found.append({"name": "yurt-shm", "emptyDir": {"medium": "Memory", "sizeLimit": _SHM_BYTES}})
    return [*found, *plain(own.volumes)]


def _mounts(run_id: str, role: str, options: KubernetesOptions) -> list[dict[str, Any]]:
    """Where the container sees `volumes`."""
    own = options.of(role)
    found: list[dict[str, Any]] = [
        {"name": "yurt-code", "mountPath": CODE, "readOnly": True},
        {"name": "yurt-run", "mountPath": RUN, "readOnly": True},
        {"name": "yurt-local", "mountPath": LOCAL},
    ]
    if _shares_checkpoints(role, options):
        found.append({"name": "yurt-checkpoints", "mountPath": CHECKPOINTS, "subPath": run_id})
    if _has_shm(role, own):
        found.append({"name": "yurt-shm", "mountPath": SHM})
    return [*found, *plain(own.volume_mounts)]


def _shares_checkpoints(role: str, options: KubernetesOptions) -> bool:
    return role != names.KEEPER and options.checkpoint_claim is not None


def _has_shm(role: str, own: PodOptions) -> bool:
    """Whether a task needs one from us: the user's own at the same place would collide with it."""
    return role != names.KEEPER and not any(
        str(each.get("mountPath", "")).rstrip("/") == SHM for each in own.volume_mounts
    )
