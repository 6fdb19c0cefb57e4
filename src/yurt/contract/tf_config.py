"""TF_CONFIG, from the cluster spec that the rendezvous agreed on."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from yurt.contract.spec import EVALUATOR, ROLES, RunSpec

#: Linux takes at most 128 KiB (MAX_ARG_STRLEN) for one environment string; a longer TF_CONFIG is in the file alone.
LONGEST_ENVIRONMENT_BYTES = 128 * 1024 - 1


def cluster_of(spec: RunSpec, addresses: Mapping[str, str]) -> dict[str, list[str]]:
    """The cluster spec: role -> addresses in order of index.

    `addresses` is task name -> ``host:port``. Evaluators are never listed, roles without tasks are left out,
    and never TensorFlow's ``sparseCluster``.
    """
    cluster: dict[str, list[str]] = {}
    for role in ROLES:
        tasks = sorted((task for task in spec.tasks if task.role == role), key=lambda task: task.index)
        if tasks and role != EVALUATOR:
            cluster[role] = [addresses[task.name] for task in tasks]
    return cluster


def tf_config(cluster: Mapping[str, Sequence[str]], role: str, index: int, own_address: str) -> str:
    """The text of TF_CONFIG for one task.

    An evaluator's own TF_CONFIG lists itself as well: TensorFlow 2.21's MultiWorkerMirroredStrategy raises
    KeyError 'evaluator' where it does not.
    """
    listed = {name: list(addresses) for name, addresses in cluster.items()}
    if role == EVALUATOR:
        listed[EVALUATOR] = [own_address] * (index + 1)
    return json.dumps({"cluster": listed, "task": {"type": role, "index": index}})


def seen_from_itself(
    cluster: Mapping[str, Sequence[str]], role: str, index: int, own_address: str
) -> dict[str, list[str]]:
    """The cluster spec with a loopback in place of the task's own address, at the same port."""
    seen = {name: list(addresses) for name, addresses in cluster.items()}
    if role in seen:
        seen[role][index] = join_host_port("127.0.0.1", split_host_port(own_address)[1])
    return seen


def join_host_port(host: str, port: int) -> str:
    """``host:port``, with the brackets that TensorFlow needs around an IPv6 address (without them it hangs)."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def split_host_port(address: str) -> tuple[str, int]:
    """Back from `join_host_port`; ValueError where there is no port."""
    host, _, port = address.rpartition(":")
    if not host:
        raise ValueError(f"{address!r} has no port")
    return host.removeprefix("[").removesuffix("]"), int(port)
