"""What rendering needs to know of a cluster."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from yurt.engines.kubernetes import names
from yurt.engines.kubernetes.client import Client, KubernetesError
from yurt.engines.kubernetes.kinds import NODE, SERVICE_ACCOUNT, TFJOB
from yurt.engines.kubernetes.options import KubernetesOptions


@dataclass(frozen=True, slots=True)
class Node:
    """A node that is ready and takes new pods. `allocatable` is what pods may have of it when it is empty.

    Quantities are in Kubernetes' words: ``{"cpu": "3920m", "memory": "12698620Ki", "nvidia.com/gpu": "1"}``.
    """

    name: str
    allocatable: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Ground:
    """A cluster as seen by one account in one namespace.

    version
        The API server's, such as ``v1.36.3``; empty where it is not known.
    tfjobs
        Whether it serves TFJobs (kubeflow.org/v1); None where it is not known.
    keeper_account
        Whether the namespace has the account by which a keeper acts (`names.KEEPER_ACCOUNT`, or the one that the
        options name).
    nodes
        None where this account may not read them.
    unknown
        Why nothing is known, as a sentence.
    """

    version: str = ""
    namespace: str = "default"
    tfjobs: bool | None = None
    keeper_account: bool = False
    nodes: tuple[Node, ...] | None = None
    unknown: str | None = None

    def older_than(self, major: int, minor: int) -> bool:
        """Whether it is certainly older."""
        found = re.match(r"v?(\d+)\.(\d+)", self.version)
        return found is not None and (int(found[1]), int(found[2])) < (major, minor)


def look_at(client: Client, options: KubernetesOptions) -> Ground:
    """Read it. Raises EngineError where the cluster does not answer; what may not be read is left unknown."""
    namespace = options.namespace or client.namespace
    account = options.keeper_account or names.KEEPER_ACCOUNT
    return Ground(
        version=client.version(),
        namespace=namespace,
        tfjobs=client.serves(TFJOB),
        keeper_account=_has_account(client, account, namespace),
        nodes=_nodes(client),
    )


def _has_account(client: Client, name: str, namespace: str) -> bool:
    try:
        return client.get(SERVICE_ACCOUNT, name, namespace) is not None
    except KubernetesError as error:
        if error.status == 403:
            return False
        raise


def _nodes(client: Client) -> tuple[Node, ...] | None:
    try:
        found = client.list(NODE)["items"]
    except KubernetesError as error:
        if error.status == 403:
            return None
        raise
    return tuple(node_of(each) for each in found if _usable(each))


def node_of(value: Mapping[str, Any]) -> Node:
    """A node from the API's object."""
    meta = value["metadata"]
    return Node(meta["name"], dict(value["status"].get("allocatable") or {}), dict(meta.get("labels") or {}))


def _usable(value: Mapping[str, Any]) -> bool:
    ready = any(
        each["type"] == "Ready" and each["status"] == "True" for each in value["status"].get("conditions") or ()
    )
    return ready and not value.get("spec", {}).get("unschedulable")
