"""This task's place in the cluster, by TF_CONFIG, and every fault of it in one sentence.

TensorFlow 2.21 answers a wrong TF_CONFIG with a traceback (no JSON, an index too large, two chiefs), or waits in
silence for an hour (an address twice, no port, an address that nobody can reach). Here it is read before TensorFlow
reads it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from yurt.contract import names
from yurt.contract.spec import CHIEF, EVALUATOR, ROLES, WORKER
from yurt.training.errors import TrainingError

_LOOPBACK: Final = ("localhost", "[::1]", "0.0.0.0")  # noqa: S104 - what others write, nothing is bound
#: TensorFlow 1's name of the chief.
_MASTER: Final = "master"


@dataclass(frozen=True, slots=True)
class Place:
    """Role and index of this task, and the cluster: role -> addresses ``host:port``, empty where there is none.

    The cluster has no evaluators: nobody talks to them.
    """

    role: str = WORKER
    index: int = 0
    cluster: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def task(self) -> str:
        """``worker/0``."""
        return f"{self.role}/{self.index}"

    @property
    def training(self) -> int:
        """How many tasks train in step: chief and workers."""
        return len(self.cluster.get(CHIEF, ())) + len(self.cluster.get(WORKER, ()))

    @property
    def leads(self) -> bool:
        """Whether this is the chief, or worker 0 where there is no chief; true outside any cluster."""
        return self.role == CHIEF or (self.role == WORKER and self.index == 0 and not self.cluster.get(CHIEF))

    def tf_config(self) -> str:
        """The same as TensorFlow reads it."""
        cluster = {role: list(addresses) for role, addresses in self.cluster.items()}
        return json.dumps({"cluster": cluster, "task": {"type": self.role, "index": self.index}})


def place(environment: Mapping[str, str] | None = None) -> Place:
    """This task's place by TF_CONFIG, or by the file that YURT_TF_CONFIG_FILE names; alone where neither is set.

    Takes what TFJob, Kubeflow and people write: more keys than are needed, ``master`` for the chief, an index as text,
    an evaluator in everyone's cluster, an empty TF_CONFIG. Raises TrainingError.
    """
    env = os.environ if environment is None else environment
    text = env.get(names.TF_CONFIG, "")
    if not text and (file := env.get(names.TF_CONFIG_FILE)) and Path(file).is_file():
        text = Path(file).read_text(encoding="utf-8")  # too long for an environment
    if not text.strip():
        return Place()
    config = _parsed(text)
    cluster = _cluster(config.get("cluster") or {})
    task = config.get("task") or {}
    if not cluster and not task:
        return Place()
    if not isinstance(task, Mapping) or "type" not in task:
        raise TrainingError(
            "TF_CONFIG does not say which task this is",
            hint='"task": {"type": "worker", "index": 0} beside "cluster", another on each task',
        )
    role = CHIEF if task["type"] == _MASTER else task["type"]
    index = _index(task.get("index", 0))
    if role not in ROLES:
        raise TrainingError(f"TF_CONFIG gives this task the role {role!r}", hint=f"one of {', '.join(ROLES)}")
    if role != EVALUATOR:
        _check_listed(role, index, cluster)
    _check_addresses({name: addresses for name, addresses in cluster.items() if name != EVALUATOR})
    return Place(role, index, {name: cluster[name] for name in ROLES if cluster.get(name) and name != EVALUATOR})


def tell_tensorflow(found: Place) -> None:
    """Write TF_CONFIG anew where what stands there would lead TensorFlow 2.21 wrong.

    An empty text is no JSON, ``master`` is no role, an evaluator in everyone's cluster is waited for by parameter
    servers, and a long text lies in a file alone. An evaluator's own stays as it is.
    """
    text = os.environ.get(names.TF_CONFIG, "")
    if found.cluster and found.role != EVALUATOR:
        if _parsed(text or "{}").get("cluster") != json.loads(found.tf_config())["cluster"] or _MASTER in text:
            os.environ[names.TF_CONFIG] = found.tf_config()
    elif not text.strip():
        os.environ.pop(names.TF_CONFIG, None)


def _parsed(text: str) -> dict[str, Any]:
    try:
        config = json.loads(text)
    except ValueError as error:
        raise TrainingError(f"TF_CONFIG is no JSON: {error}", hint=_short(text)) from None
    if not isinstance(config, dict):
        raise TrainingError(f"TF_CONFIG is no JSON object but {_short(text)}", hint='{"cluster": ..., "task": ...}')
    return config


def _short(text: str) -> str:
    return text if len(text) <= 120 else f"{text[:120]}..."


def _cluster(given: Any) -> dict[str, tuple[str, ...]]:
    if not isinstance(given, Mapping):
        raise TrainingError("TF_CONFIG's cluster is no object", hint='{"worker": ["host:port", ...]}')
    cluster: dict[str, tuple[str, ...]] = {}
    for name, addresses in given.items():
        role = CHIEF if name == _MASTER else name
        if role not in ROLES:
            raise TrainingError(f"TF_CONFIG's cluster has the role {name!r}", hint=f"it may have {', '.join(ROLES)}")
        if role in cluster:
            raise TrainingError("TF_CONFIG's cluster has a chief and a master", hint="they are the same: keep one")
        if isinstance(addresses, str) or not all(isinstance(each, str) for each in addresses):
            raise TrainingError(f"TF_CONFIG's addresses of {name} are no list", hint='["host:port", ...]')
        cluster[role] = tuple(addresses)
    if len(cluster.get(CHIEF, ())) > 1:
        raise TrainingError(
            f"TF_CONFIG's cluster has {len(cluster[CHIEF])} chiefs", hint="one chief; the others are workers"
        )
    return cluster


def _index(given: Any) -> int:
    try:
        index = int(given)
    except (TypeError, ValueError):
        index = -1
    if index < 0:
        raise TrainingError(f"TF_CONFIG gives this task the index {given!r}", hint="a number from 0")
    return index


def _check_listed(role: str, index: int, cluster: Mapping[str, tuple[str, ...]]) -> None:
    count = len(cluster.get(role, ()))
    if index >= count:
        raise TrainingError(
            f"this is {role}/{index} by TF_CONFIG, and its cluster has {count or 'no'} {role}{'s' * (count > 1)}",
            hint=f"indices count from 0: the last is {role}/{count - 1}" if count else f"list it under {role!r}",
        )


def _check_addresses(cluster: Mapping[str, tuple[str, ...]]) -> None:
    owner: dict[str, str] = {}
    for role, addresses in cluster.items():
        for index, address in enumerate(addresses):
            task, (host, _, port) = f"{role}/{index}", address.rpartition(":")
            if not host or not port.isdigit() or not 0 < int(port) < 65536:
                raise TrainingError(f"{task} has the address {address!r} in TF_CONFIG", hint="host:port, port 1-65535")
            if ":" in host and not host.startswith("["):
                raise TrainingError(f"{task} has the address {address!r} in TF_CONFIG", hint=f"[{host}]:{port}")
            if address in owner:
                raise TrainingError(
                    f"TF_CONFIG gives {owner[address]} and {task} the same address, {address}",
                    hint="each task needs an address of its own",
                )
            owner[address] = task
    hosts = {address: address.rpartition(":")[0] for address in owner}
    inside = [address for address, host in hosts.items() if host in _LOOPBACK or host.startswith("127.")]
    if inside and len(inside) < len(owner):
        raise TrainingError(
            f"{owner[inside[0]]} has the address {inside[0]} in TF_CONFIG, which its own machine alone can reach",
            hint="the address by which the other tasks reach it",
        )
