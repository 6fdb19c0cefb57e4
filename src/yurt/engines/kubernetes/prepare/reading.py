"""What the checks read of a cluster, each once."""

from __future__ import annotations

import functools
import shlex
from collections.abc import Mapping
from typing import Any

from yurt.engines.kubernetes import kinds
from yurt.engines.kubernetes.client import Client, KubernetesError
from yurt.engines.kubernetes.prepare.cloud import Cloud, cloud_of

Value = Mapping[str, Any]


class Reading:
    """One cluster and one namespace as they are now. Raises KubernetesError where this account may not look."""

    def __init__(self, client: Client, *, pool: tuple[str, str] | None = None) -> None:
        self.client = client
        #: The label, with its value, of the nodes that are meant for runs.
        self.pool = pool

    @property
    def namespace(self) -> str:
        """That of the runs."""
        return self.client.namespace

    @functools.cached_property
    def version(self) -> str:
        """The API server's, such as ``v1.36.3`` or ``v1.30.5-gke.1014001``."""
        return self.client.version()

    @functools.cached_property
    def nodes(self) -> list[Value]:
        """All of the cluster."""
        return list(self.client.list(kinds.NODE)["items"])

    @functools.cached_property
    def pool_nodes(self) -> list[Value]:
        """Those of the pool; all where none is named."""
        if self.pool is None:
            return self.nodes
        key, value = self.pool
        return [each for each in self.nodes if each["metadata"].get("labels", {}).get(key) == value]

    @functools.cached_property
    def pods(self) -> list[Value]:
        """Those of all namespaces that have not ended."""
        fields = "status.phase!=Succeeded,status.phase!=Failed"
        return list(self.client.list(kinds.POD, everywhere=True, fields=fields)["items"])

    @functools.cached_property
    def space(self) -> Value | None:
        """The namespace's object; None where there is none."""
        return self.client.get(kinds.NAMESPACE, self.namespace)

    @functools.cached_property
    def no_space(self) -> bool:
        """Whether there certainly is no such namespace."""
        try:
            return self.space is None
        except KubernetesError:
            return False

    @functools.cached_property
    def operator_served(self) -> bool:
        """Whether the API server knows TFJobs."""
        return self.client.serves(kinds.TFJOB)

    @functools.cached_property
    def cloud(self) -> Cloud:
        """Who runs the cluster."""
        return cloud_of(self.nodes, self.version, self.client.session.context or "")

    def command(self, *words: str) -> str:
        """``yurt kubernetes prepare ...`` for this namespace and context."""
        parts = ["yurt", "kubernetes", "prepare", "--namespace", self.namespace]
        if self.client.session.context:
            parts += ["--context", self.client.session.context]
        return shlex.join([*parts, *words])
