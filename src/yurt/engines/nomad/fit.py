"""Whether a job can be placed: never, later, or now; and what is short. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from yurt.engines.nomad.nodes import Cluster, Node
from yurt.engines.nomad.options import NomadOptions

#: What the scheduler's words for a filter mean.
_OTHERS: Final = "distinct_hosts"
_FILTERS: Final = {
    _OTHERS: "another task of the run is on the node",
    "missing drivers": "the node does not run the driver",
    "missing devices": "the node has no such device (missing devices)",
    "missing network": "the node has no CNI plugins for a bridge network (missing network)",
    "missing compatible host volumes": "the node lacks the volume",
}


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why `missing` tasks of a role cannot be placed."""

    role: str
    missing: int
    reason: str

    def __str__(self) -> str:
        return f"{self.missing} task{'s' * (self.missing != 1)} of {self.role}: {self.reason}"


def never(job: Mapping[str, Any], cluster: Cluster, options: NomadOptions) -> list[str]:
    """Why the job could not be placed even if its cluster were empty; empty where it could, or nothing is known."""
    if not cluster.nodes:
        return []
    nodes = cluster.candidates(tuple(job["Datacenters"]), options.node_pool, options.driver)
    groups = job["TaskGroups"]
    tasks = sum(group["Count"] for group in groups)
    if not nodes:
        return [_no_node(job, cluster, options)]
    found = []
    if not options.share and tasks > len(nodes):
        found.append(
            f"{tasks} tasks need as many nodes, and there are {len(nodes)} that are ready, eligible"
            f" and run {options.driver}"
        )
    for group in groups:
        asked = group["Tasks"][0]["Resources"]
        found += _too_large(group["Name"], asked, nodes, 1 if options.share else group["Count"])
    return found


def _no_node(job: Mapping[str, Any], cluster: Cluster, options: NomadOptions) -> str:
    where = f"in {' or '.join(job['Datacenters'])}" + (f", pool {options.node_pool}" if options.node_pool else "")
    inside = [node for node in cluster.nodes if node.datacenter in job["Datacenters"] or "*" in job["Datacenters"]]
    if not inside:
        return f"no node is {where}; there are nodes in {' and '.join(cluster.datacenters)}"
    usable = [node for node in inside if node.usable]
    if not usable:
        return f"none of the {len(inside)} nodes {where} is ready and eligible"
    return f"none of the {len(usable)} ready nodes {where} has a healthy driver {options.driver}"


def _too_large(role: str, asked: Mapping[str, Any], nodes: Sequence[Node], count: int) -> list[str]:
    found = []
    wanted_of = [
        ("MHz of CPU", asked.get("CPU", 0), [node.cpu_mhz for node in nodes]),
        ("cores", asked.get("Cores", 0), [node.cores for node in nodes]),
        ("MB of memory", asked["MemoryMB"], [node.memory_mb for node in nodes]),
    ]
    for device in asked.get("Devices", ()):
        has = [node.has(device["Name"]) for node in nodes]
        if not any(has):
            found.append(
                f"each task of {role} asks for {device['Count']} of {device['Name']}, and none of the {len(nodes)}"
                f" nodes has one{_others(nodes)}"
            )
        else:
            wanted_of.append((f"of {device['Name']}", device["Count"], has))
    for what, wanted, has in wanted_of:
        enough = sum(each >= wanted for each in has)
        if enough < min(count, len(nodes)):
            found.append(
                f"each task of {role} asks for {wanted:,} {what}; {enough} of {len(nodes)} nodes have as much"
                f" (the largest {max(has):,}), and {count} are needed"
            )
    return found


def _others(nodes: Sequence[Node]) -> str:
    """What devices there are instead."""
    named = {f"{each.vendor}/{each.type}/{each.model}" for node in nodes for each in node.devices if each.count}
    return f"; they have {', '.join(sorted(named))}" if named else ": their device plugin may be missing"


def waiting(failed: Mapping[str, Any] | None) -> list[Misfit]:
    """What an evaluation's or a plan's ``FailedTGAllocs`` says, a role each."""
    return [
        Misfit(role, 1 + int(metric.get("CoalescedFailures") or 0), reason_of(metric))
        for role, metric in sorted((failed or {}).items())
    ]


def hopeless(failed: Mapping[str, Any] | None) -> list[Misfit]:
    """Those of `waiting` that no other job's end can help: every node lacks what the job asks for."""
    lacking = {}
    for role, metric in (failed or {}).items():
        filters = {name: count for name, count in (metric.get("ConstraintFiltered") or {}).items() if name != _OTHERS}
        evaluated = int(metric.get("NodesEvaluated") or 0)
        if evaluated and sum(filters.values()) == evaluated:
            lacking[role] = metric
    return waiting(lacking)


def reason_of(metric: Mapping[str, Any]) -> str:
    """One metric of the scheduler in words: which dimension is short on how many nodes.

    Nomad names only the first that fails on a node.
    """
    evaluated = int(metric.get("NodesEvaluated") or 0)
    if not evaluated:
        available = metric.get("NodesAvailable") or {}
        return (
            f"no node was looked at (ready nodes: {', '.join(f'{n} in {dc}' for dc, n in available.items()) or 'none'})"
        )
    parts = [
        f"{name.removeprefix('network: ')}{'' if ': ' in name else ' is used up'} on {count} of {evaluated} nodes"
        for name, count in sorted((metric.get("DimensionExhausted") or {}).items())
    ]
    parts += [
        f"{_FILTERS.get(name, name + ' does not hold')} on {count} of {evaluated} nodes"
        for name, count in sorted((metric.get("ConstraintFiltered") or {}).items())
    ]
    parts += [f"the quota {name} is used up" for name in metric.get("QuotaExhausted") or ()]
    return "; ".join(parts) or "Nomad does not say why"
