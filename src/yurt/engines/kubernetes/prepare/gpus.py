"""Whether the GPUs of the nodes can be asked for: labels tell of hardware, a device plugin makes it known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from yurt.engines.finding import Finding, good, warning
from yurt.engines.kubernetes.prepare.nodes import GPU
from yurt.engines.kubernetes.prepare.reading import Reading, Value
from yurt.engines.kubernetes.quantities import quantity

CHECK: Final = "gpus"
#: Labels of nodes with NVIDIA's GPUs, by whoever sets them, and a value that says the contrary.
_SIGNS: Final = {
    "nvidia.com/gpu.present": "false",  # NVIDIA's feature discovery
    "nvidia.com/gpu.count": "0",
    "feature.node.kubernetes.io/pci-10de.present": "false",  # node feature discovery: NVIDIA's PCI vendor
    "cloud.google.com/gke-accelerator": "",
    "k8s.amazonaws.com/accelerator": "",
    "kubernetes.azure.com/accelerator": "",
    "accelerator": "",
}


def check(reading: Reading) -> Iterator[Finding]:
    """Nodes of the pool that have GPUs, and those whose GPUs nobody can ask for."""
    served = {name: count for node in reading.pool_nodes if (count := _served(node)) for name in (_name(node),)}
    silent = [_name(node) for node in reading.pool_nodes if _has_hardware(node) and _name(node) not in served]
    if silent:
        word, be = ("node", "has") if len(silent) == 1 else ("nodes", "have")
        what = f"{word} {', '.join(silent)} {be} GPUs, but no {GPU} that pods can ask for: no device plugin runs there"
        yield warning(CHECK, what, "a task with gpus: 1 stays Pending", reading.cloud.gpu_plugin())
    if served:
        total = sum(served.values())
        yield good(CHECK, f"{total} of {GPU} on {len(served)} node{'s' * (len(served) != 1)}")
    elif not silent:
        yield good(CHECK, "no node has GPUs; none is needed unless a job asks for some")


def _served(node: Value) -> int:
    return int(quantity(node.get("status", {}).get("allocatable", {}).get(GPU, 0)))


def _has_hardware(node: Value) -> bool:
    labels = node["metadata"].get("labels", {})
    return any(key in labels and labels[key] != contrary for key, contrary in _SIGNS.items())


def _name(node: Value) -> str:
    return str(node["metadata"]["name"])
