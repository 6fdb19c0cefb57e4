"""What a task's container asks for, and the most that it gets."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from yurt.contract.spec import TaskSpec
from yurt.engines.kubernetes.options import PodOptions
from yurt.engines.kubernetes.quantities import quantity

GPU: Final = "nvidia.com/gpu"
_KIB: Final = 1024


def resources(task: TaskSpec, options: PodOptions) -> dict[str, dict[str, str]]:
    """``{"requests": {...}, "limits": {...}}``: the role's numbers are both, unless the options say otherwise.

    A resource that nodes do not share out in parts (a GPU) has to be the same in both: said once, it is.
    """
    own = _of_role(task)
    return amounts(own, own, options)


def amounts(
    own_requests: Mapping[str, str], own_limits: Mapping[str, str], options: PodOptions
) -> dict[str, dict[str, str]]:
    """The same for a container's own amounts, over which those of the options go."""
    requests = {**own_requests, **written(options.requests)}
    limits = {**own_limits, **written(options.limits)}
    for first, second, own_words in ((limits, requests, options.requests), (requests, limits, options.limits)):
        for name, amount in first.items():
            if is_counted(name) and name not in own_words:
                second[name] = amount
    found = {"requests": requests, "limits": limits}
    return {part: dict(sorted(each.items())) for part, each in found.items() if each}


def is_counted(resource: str) -> bool:
    """Whether a node gives it only whole and to one pod alone, such as ``nvidia.com/gpu`` (an extended resource)."""
    return "/" in resource and not resource.startswith("kubernetes.io/")


def threads(task: TaskSpec, options: PodOptions) -> int | None:
    """What TensorFlow is told: the most CPUs that the task gets, rounded up; None where it may have all of its node."""
    limit = resources(task, options).get("limits", {}).get("cpu")
    try:
        return max(1, math.ceil(quantity(limit))) if limit is not None else None
    except ValueError:
        return None  # it is refused where it is checked


def has_gpus(task: TaskSpec, options: PodOptions) -> bool:
    """Whether it asks for any GPU, of whatever maker, or for a part of one."""
    names = resources(task, options).get("limits", {})
    claims = options.container.get("resources", {}).get("claims") if options.container else None
    return bool(claims) or any("gpu" in name or name.startswith("nvidia.com/") for name in names)


def _of_role(task: TaskSpec) -> dict[str, str]:
    found = {}
    if task.cpus is not None:
        found["cpu"] = _cpus(task.cpus)
    if task.memory_bytes is not None:
        found["memory"] = _memory(task.memory_bytes)
    if task.gpus:
        found[GPU] = str(task.gpus)
    return found


def _cpus(cpus: float) -> str:
    thousandths = max(1, round(cpus * 1000))
    return str(thousandths // 1000) if thousandths % 1000 == 0 else f"{thousandths}m"


def _memory(size_bytes: int) -> str:
    for suffix, scale in (("Gi", _KIB**3), ("Mi", _KIB**2), ("Ki", _KIB)):
        if size_bytes % scale == 0:
            return f"{size_bytes // scale}{suffix}"
    return str(size_bytes)


def written(given: Mapping[str, Any]) -> dict[str, str]:
    """Amounts as text, as Kubernetes itself writes them."""
    return {name: _number(amount) if isinstance(amount, float) else str(amount) for name, amount in given.items()}


def _number(amount: float) -> str:
    return str(int(amount)) if amount.is_integer() else repr(amount)
