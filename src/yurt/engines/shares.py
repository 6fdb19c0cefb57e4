"""Divides this machine among a run's tasks."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from yurt.contract.spec import EVALUATOR, PS, TaskSpec


@dataclass(frozen=True, slots=True)
class Share:
    """A task's part. `cpus` None: all of them; `threads` None: TensorFlow chooses; `gpus` None: left alone."""

    cpus: tuple[int, ...] | None
    threads: int | None
    gpus: str | None


def divide(
    tasks: Sequence[TaskSpec], cpus: Sequence[int], gpus: Sequence[str], *, pin: bool
) -> tuple[Mapping[str, Share], list[str]]:
    """Each task's share by name, and what a person should know of it.

    CPUs: a role that names `cpus` gets them, rounded up to whole ones; the rest is divided evenly among the others,
    in disjoint sets, each with as many threads as CPUs (pinning alone is the worst of all under load: TensorFlow
    2.21, measured). With more tasks than CPUs nothing is pinned and every task gets few threads.
    GPUs: a role that names `gpus` gets them; the rest is divided evenly among chief and workers; ps and evaluators
    get none. On a machine without GPUs CUDA_VISIBLE_DEVICES is left alone.
    """
    notes: list[str] = []
    cpu_sets = _divide_cpus(tasks, list(cpus), notes) if pin else {}
    gpu_sets = _divide_gpus(tasks, list(gpus), notes) if gpus or any(task.gpus for task in tasks) else {}
    few = max(1, len(cpus) // max(1, len(tasks)))
    shares = {}
    for task in tasks:
        own = cpu_sets.get(task.name)
        threads = None if not pin else len(own) if own else few
        shares[task.name] = Share(cpus=own, threads=threads, gpus=gpu_sets.get(task.name))
    return shares, notes


def _divide_cpus(tasks: Sequence[TaskSpec], cpus: list[int], notes: list[str]) -> dict[str, tuple[int, ...]]:
    if len(tasks) == 1 and tasks[0].cpus is None:
        return {}  # all of it, and TensorFlow's own choice of threads
    asked = {task.name: math.ceil(task.cpus) for task in tasks if task.cpus is not None}
    others = [task.name for task in tasks if task.name not in asked]
    left = len(cpus) - sum(asked.values())
    if left < len(others):
        notes.append(
            f"{len(tasks)} tasks share {len(cpus)} CPUs (more was asked than there is): none is pinned, "
            "and times say little about scaling"
        )
        return {}
    counts = dict(asked)
    for position, name in enumerate(others):
        counts[name] = left // len(others) + (1 if position < left % len(others) else 0)
    result, start = {}, 0
    for task in tasks:
        result[task.name] = tuple(cpus[start : start + counts[task.name]])
        start += counts[task.name]
    return result


def _divide_gpus(tasks: Sequence[TaskSpec], gpus: list[str], notes: list[str]) -> dict[str, str]:
    asked = {task.name: task.gpus for task in tasks if task.gpus is not None}
    others = [task.name for task in tasks if task.name not in asked and task.role not in (PS, EVALUATOR)]
    if (wanted := sum(asked.values())) > len(gpus):
        notes.append(f"the job asks for {wanted} GPUs, this machine has {len(gpus)}")
    result, start = {}, 0
    for task in tasks:
        count = asked.get(task.name, 0)
        if task.name in others:
            left, position = max(0, len(gpus) - wanted), others.index(task.name)
            count = left // len(others) + (1 if position < left % len(others) else 0)
        result[task.name] = ",".join(gpus[start : start + count]) or "-1"
        start += count
    return result
