"""Whether there are nodes that take pods, and how much is free on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from yurt.engines.finding import Finding, good, problem, warning
from yurt.engines.kubernetes.client import KubernetesError
from yurt.engines.kubernetes.prepare.reading import Reading, Value
from yurt.engines.kubernetes.quantities import in_words, quantity

CHECK: Final = "nodes"
GPU: Final = "nvidia.com/gpu"
_SHOWN: Final = {"cpu": "CPUs", "memory": "memory", GPU: "GPUs"}
#: Of these effects pods are kept away, unless they tolerate the taint.
_KEEPING_AWAY: Final = ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Room:
    """What is free on one node for pods, by resource."""

    node: str
    free: dict[str, Decimal]

    def in_words(self) -> str:
        """``node2: 3500m CPUs, 12Gi memory``."""
        parts = [f"{in_words(key, self.free[key])} {word}" for key, word in _SHOWN.items() if self.free.get(key)]
        return f"{self.node}: {', '.join(parts) or 'nothing'}"


def check(reading: Reading) -> Iterator[Finding]:
    """Nodes of the pool that are ready, those that are not, and the largest that is free."""
    nodes = reading.pool_nodes
    if not nodes and reading.pool:
        key, value = reading.pool
        why = "pods that ask for the label stay Pending"
        mend = reading.command("--node-pool-label", f"{key}={value}", "--nodes", "NODE,NODE")
        yield problem(CHECK, f"no node has the label {key}={value}", why, mend)
        return
    usable = [each for each in nodes if ready(each) and not closed(each)]
    if not usable:
        what = "no node is ready and takes pods" if nodes else "the cluster has no node"
        yield problem(CHECK, what, "every pod stays Pending", "kubectl describe nodes   # or add a node to the pool")
    yield from _not_ready(nodes)
    tainted = [each for each in usable if _taints(each)]
    if usable and len(tainted) == len(usable):
        keys = sorted({taint["key"] for each in usable for taint in _taints(each)})
        why = "a pod that does not tolerate one of a node's taints is not put there"
        mend = _toleration(_taints(usable[0])[0])
        yield warning(CHECK, f"every ready node keeps pods away by a taint ({', '.join(keys)})", why, mend)
    elif tainted:
        yield good(CHECK, f"{_named(tainted)} for pods only that tolerate a taint of theirs")
    if usable:
        yield _largest(reading, [each for each in usable if each not in tainted] or usable)


def rooms(nodes: Iterable[Value], pods: Iterable[Value]) -> list[Room]:
    """What is free on each node: what it has for pods, less what its pods ask for."""
    free: dict[str, dict[str, Decimal]] = {}
    for node in nodes:
        has = node.get("status", {}).get("allocatable", {})
        free[node["metadata"]["name"]] = {key: quantity(has[key]) for key in _SHOWN if key in has}
    for pod in pods:
        room = free.get(pod["spec"].get("nodeName", ""))
        if room is None:
            continue
        for key in room:
            room[key] -= _asked(pod, key)
    return [Room(name, {key: max(value, Decimal(0)) for key, value in each.items()}) for name, each in free.items()]


def ready(node: Value) -> bool:
    """Whether its kubelet says so."""
    conditions = node.get("status", {}).get("conditions", ())
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def closed(node: Value) -> bool:
    """Whether somebody has cordoned it."""
    return bool(node.get("spec", {}).get("unschedulable"))


def _largest(reading: Reading, nodes: Sequence[Value]) -> Finding:
    count = f"{len(nodes)} node{'s' * (len(nodes) != 1)} {'take' if len(nodes) != 1 else 'takes'} pods"
    try:
        found = rooms(nodes, reading.pods)
        word = "free"
    except KubernetesError:  # the pods of others are not this account's business
        found, word = rooms(nodes, ()), "for pods, if nothing else runs there"
    best = max(found, key=lambda each: (each.free.get(GPU, 0), each.free.get("cpu", 0), each.free.get("memory", 0)))
    return good(CHECK, f"{count}; the most {word} on one: {best.in_words()}")


def _not_ready(nodes: Sequence[Value]) -> Iterator[Finding]:
    down = [each for each in nodes if not ready(each)]
    if down:
        why = "what ran there is lost, and nothing is placed there"
        yield warning(CHECK, f"{_named(down)} not ready", why, f"kubectl describe node {down[0]['metadata']['name']}")
    cordoned = [each for each in nodes if ready(each) and closed(each)]
    if cordoned:
        names = " ".join(each["metadata"]["name"] for each in cordoned)
        yield warning(CHECK, f"{_named(cordoned)} cordoned", "nothing new is placed there", f"kubectl uncordon {names}")


def _taints(node: Value) -> list[Value]:
    return [each for each in node.get("spec", {}).get("taints", ()) if each.get("effect") in _KEEPING_AWAY]


def _toleration(taint: Value) -> str:
    value = f", value: {taint['value']}" if taint.get("value") else ", operator: Exists"
    return f"engines: {{kubernetes: {{tolerations: [{{key: {taint['key']}{value}, effect: {taint['effect']}}}]}}}}"


def _asked(pod: Value, resource: str) -> Decimal:
    """By all of its containers at once; an init container counts where it asks for more, or stays (a sidecar)."""
    spec = pod["spec"]
    together = sum((_request(each, resource) for each in spec["containers"]), Decimal(0))
    before = Decimal(0)
    for each in spec.get("initContainers", ()):
        if each.get("restartPolicy") == "Always":
            together += _request(each, resource)
        else:
            before = max(before, _request(each, resource))
    overhead = quantity(spec.get("overhead", {}).get(resource, 0))
    return max(together, before) + overhead


def _request(container: Value, resource: str) -> Decimal:
    return quantity(container.get("resources", {}).get("requests", {}).get(resource, 0))


def _named(nodes: Sequence[Value]) -> str:
    names = [each["metadata"]["name"] for each in nodes]
    shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    return f"node {shown} is" if len(names) == 1 else f"nodes {shown} are"
