"""What a cluster's nodes have, as far as placing a run on them is concerned."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from yurt.engines.nomad.versions import parsed


@dataclass(frozen=True, slots=True)
class Devices:
    """Devices of one model on a node: `count` healthy ones."""

    vendor: str
    type: str
    model: str
    count: int

    def named(self, name: str) -> bool:
        """Whether a job's name for a device means these: TYPE, VENDOR/TYPE or VENDOR/TYPE/MODEL."""
        parts = name.split("/", 2)
        if len(parts) == 1:
            return parts[0] == self.type
        return parts == [self.vendor, self.type, self.model][: len(parts)]


@dataclass(frozen=True, slots=True)
class Node:
    """One client. `cpu_mhz` and `memory_mb` are what tasks may have when the node is empty; `drivers` are healthy."""

    id: str
    name: str
    datacenter: str
    status: str
    eligible: bool
    cpu_mhz: int = 0
    cores: int = 0
    memory_mb: int = 0
    devices: tuple[Devices, ...] = ()
    drivers: frozenset[str] = frozenset()
    pool: str = "default"
    attributes: Mapping[str, str] = field(default_factory=dict)

    def has(self, device: str) -> int:
        """How many devices of this name it has: of one model, since Nomad gives a task no mixture."""
        return max((each.count for each in self.devices if each.named(device)), default=0)

    @property
    def usable(self) -> bool:
        """Whether anything can be placed on it now."""
        return self.status == "ready" and self.eligible


@dataclass(frozen=True, slots=True)
class Cluster:
    """All nodes, the asked agent's version (empty where a token may not ask), and why nothing is known."""

    nodes: tuple[Node, ...] = ()
    version: str = ""
    unknown: str | None = None

    @property
    def nomad(self) -> str:
        """Nomad's version; where the agent does not tell it, the oldest of the nodes'; empty where none is known."""
        known = [each.attributes["nomad.version"] for each in self.nodes if each.attributes.get("nomad.version")]
        return self.version or min(known, key=lambda text: parsed(text) or (), default="")

    @property
    def datacenters(self) -> tuple[str, ...]:
        """Those that nodes are in; Nomad's own default where none is known."""
        return tuple(sorted({node.datacenter for node in self.nodes})) or ("dc1",)

    def candidates(self, datacenters: tuple[str, ...], pool: str | None, driver: str) -> list[Node]:
        """The usable nodes in these datacenters that run the driver."""
        return [
            node
            for node in self.nodes
            if node.usable
            and ("*" in datacenters or node.datacenter in datacenters)
            and driver in node.drivers
            and (pool is None or pool in (node.pool, "all"))
        ]


def node_of(value: Mapping[str, Any]) -> Node:
    """A node from the JSON of ``/v1/node/:id`` (Nomad 1.0.18)."""
    resources, reserved = value.get("NodeResources") or {}, value.get("ReservedResources") or {}
    cpu = resources.get("Cpu") or {}
    attributes = value.get("Attributes") or {}
    drivers = value.get("Drivers") or {}
    return Node(
        id=value["ID"],
        name=value["Name"],
        datacenter=value["Datacenter"],
        status=value["Status"],
        eligible=value.get("SchedulingEligibility") == "eligible" and not value.get("Drain"),
        cpu_mhz=int(cpu.get("CpuShares", 0)) - int((reserved.get("Cpu") or {}).get("CpuShares", 0)),
        cores=int(cpu.get("TotalCpuCores") or attributes.get("cpu.numcores") or 0),
        memory_mb=int((resources.get("Memory") or {}).get("MemoryMB", 0))
        - int((reserved.get("Memory") or {}).get("MemoryMB", 0)),
        devices=tuple(
            Devices(
                vendor=device.get("Vendor", ""),
                type=device.get("Type", ""),
                model=device.get("Name", ""),
                count=sum(bool(each.get("Healthy", True)) for each in device.get("Instances") or ()),
            )
            for device in resources.get("Devices") or ()
        ),
        drivers=frozenset(name for name, each in drivers.items() if each.get("Detected") and each.get("Healthy")),
        pool=value.get("NodePool") or "default",
        attributes=attributes,
    )
