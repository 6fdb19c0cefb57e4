"""One role as its pod template describes it, before it is known where it will run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from yurt.convert.tfjob.tree import Node
from yurt.job import RestartPolicy, RoleName


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable: its text as it is written, or where the cluster has its value."""

    name: str
    text: str | None
    source: Node | None
    node: Node


@dataclass(frozen=True, slots=True)
class Option:
    """What Kubernetes is told about a role, under one key of the Kubernetes engine's options."""

    value: Any
    node: Node


@dataclass(slots=True)
class RoleRead:
    """A role as it was read.

    `command` and `args` are as they are written, None where nothing is; what the kubelet fills in is not filled in.
    `asks_cpus` and `asks_memory_bytes` are requests without a limit. `options` are those of the Kubernetes engine.
    """

    name: RoleName
    node: Node
    container: Node
    replicas: int
    image: str | None = None
    command: list[str] | None = None
    args: list[str] | None = None
    folder: str | None = None
    variables: list[Variable] = field(default_factory=list)
    variables_from: list[Node] = field(default_factory=list)
    volumes: list[Node] = field(default_factory=list)
    mounts: list[Node] = field(default_factory=list)
    cpus: float | None = None
    memory_bytes: int | None = None
    gpus: int | None = None
    grace_s: float | None = None
    restart: RestartPolicy = RestartPolicy.NEVER
    standard_server: bool = False
    options: dict[str, Option] = field(default_factory=dict)
    # What it becomes once it is known where it runs.
    words: tuple[str, ...] | None = None
    env: dict[str, str] = field(default_factory=dict)

    def put(self, key: str, node: Node | None) -> None:
        """Carry a value of Kubernetes as it is."""
        if node is not None and (value := node.plain()) not in (None, "", [], {}):
            self.options[key] = Option(value, node)

    def put_more(self, key: str, name: str, value: Any, node: Node) -> None:
        """Carry one entry of an option that is a mapping."""
        if value in (None, "", [], {}):
            return
        entries = self.options[key].value if key in self.options else {}
        self.options[key] = Option({**entries, name: value}, node)
