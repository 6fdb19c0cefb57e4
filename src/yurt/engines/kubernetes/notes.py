"""What a person should know of a run before it is sent, though it can be sent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from yurt.contract.spec import RunSpec
from yurt.engines.kubernetes.ground import Ground, Node
from yurt.engines.kubernetes.options import TFJOB, KubernetesOptions
from yurt.engines.kubernetes.placing import asked
from yurt.engines.kubernetes.quantities import in_words, quantity
from yurt.engines.kubernetes.roles import templates, way_of

_NOTHING: Final = Decimal(0)


def notes(run: RunSpec, options: KubernetesOptions, ground: Ground) -> list[str]:
    """Sentences for the launcher to show."""
    way = way_of(options, ground)
    found = [] if ground.unknown is None else [ground.unknown]
    if not run.output:
        found.append(f"the job names no output: its model goes with the pod of {run.deciding}")
    elif run.output.startswith("file:"):
        found.append(f"the model is published to {run.output} in the pod of {run.deciding}, not on this machine")
    return [*found, *_of_scheduling(run, options, way), *_of_way(options, way), *_of_room(run, options, ground, way)]


def _of_scheduling(run: RunSpec, options: KubernetesOptions, way: str) -> Iterator[str]:
    operated = way == TFJOB
    if options.scheduling.by == "kueue" and not operated and len({task.role for task in run.tasks}) > 1:
        yield "Kueue admits the job of each role by itself; as a TFJob (operator: tfjob) they come together"
    if options.scheduling.by == "volcano" and operated:
        yield "the training operator heeds a gang only where it was started with --gang-scheduler-name=volcano"
    if options.suspend:
        yield "the run is submitted suspended: nothing of it starts until somebody resumes it"


def _of_way(options: KubernetesOptions, way: str) -> Iterator[str]:
    if way == TFJOB:
        if any(own.init_containers for own in (options, *options.roles.values())):
            yield "the training operator runs an init container that fails again without end"
        return
    for name in ("clean_pod_policy", "managed_by"):
        if getattr(options, name) is not None:
            yield f"{name} is of a TFJob, and this run goes without the operator"


def _of_room(run: RunSpec, options: KubernetesOptions, ground: Ground, way: str) -> Iterator[str]:
    """What no node has room for now, were it empty; a cluster may make larger ones."""
    if not ground.nodes:
        return
    if options.spread == "required" and len(ground.nodes) < len(run.tasks):
        yield f"{len(run.tasks)} tasks are to have a node each, and {len(ground.nodes)} are ready"
    for role, template in templates(run, options, way):
        spec = template["spec"]
        nodes = [node for node in ground.nodes if _has_labels(node, spec.get("nodeSelector") or {})]
        if not nodes:
            wanted = ", ".join(f"{key}={value}" for key, value in spec["nodeSelector"].items())
            yield f"no node that is ready has the labels that {role} asks for: {wanted}"
            continue
        for name in sorted({"cpu", "memory", *spec["containers"][0].get("resources", {}).get("requests", {})}):
            amount, largest = asked(template, name), max(_has(node, name) for node in nodes)
            if amount > largest:
                shown = in_words(name, largest) if largest else "none"
                yield f"{role} asks for {in_words(name, amount)} of {name}, and the largest ready node has {shown}"


def _has_labels(node: Node, wanted: Mapping[str, Any]) -> bool:
    return all(node.labels.get(key) == value for key, value in wanted.items())


def _has(node: Node, resource: str) -> Decimal:
    amount = node.allocatable.get(resource)
    return quantity(amount) if amount is not None else _NOTHING
