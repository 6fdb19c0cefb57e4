"""A run without any operator: an Indexed Job a role."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from yurt.contract.spec import RunSpec, TaskSpec
from yurt.engines.kubernetes import labels, names
from yurt.engines.kubernetes.options import NONE, KubernetesOptions
from yurt.engines.kubernetes.resources import written
from yurt.engines.kubernetes.roles import roles_of, templates

#: Seconds beyond a run's deadline after which Kubernetes itself ends pods whose agents have not.
_MARGIN_S: Final = 120
#: Failures of pods beyond those that the agents count, until a job is given up.
_FAILURES: Final = 6
_MOST: Final = 2**31 - 1


def jobs(run: RunSpec, options: KubernetesOptions) -> list[dict[str, Any]]:
    """One for each role."""
    made = dict(templates(run, options, NONE))
    return [_job(run, tasks, options, made[tasks[0].role]) for tasks in roles_of(run)]


def pod_group(run: RunSpec, options: KubernetesOptions) -> dict[str, Any]:
    """Volcano's group of all tasks: they start together, or none of them."""
    scheduling = options.scheduling
    spec = {
        "minMember": scheduling.min_available or len(run.tasks),
        "queue": scheduling.queue,
        "priorityClassName": scheduling.priority_class,
        "minResources": written(scheduling.min_resources),
    }
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {
            "name": names.pod_group(run.run_id),
            "labels": labels.of_object(run.run_id, "pod-group"),
        },
        "spec": {name: value for name, value in spec.items() if value},
    }


def _job(
    run: RunSpec, tasks: Sequence[TaskSpec], options: KubernetesOptions, template: Mapping[str, Any]
) -> dict[str, Any]:
    role = tasks[0].role
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": metadata(run, names.job(run.run_id, role), role, options),
        "spec": {
            "completionMode": "Indexed",
            "completions": len(tasks),
            "parallelism": len(tasks),
            "backoffLimit": failures(run),
            **deadline(run),
            **({"suspend": True} if suspended(options) else {}),
            # No podFailurePolicy: with one, a pod on a dead node is not replaced before the node is removed.
            "template": dict(template),
        },
    }


def failures(run: RunSpec) -> int:
    """How many pods may fail until Kubernetes gives up: more than the agents, who count restarts of the gang, allow.

    One restart may cost all pods of the run, as when a node is lost.
    """
    return min((run.max_restarts + 1) * len(run.tasks) + _FAILURES, _MOST)


def deadline(run: RunSpec) -> dict[str, int]:
    """``activeDeadlineSeconds``, behind the deadline that the agents keep; nothing where the run has none."""
    if run.deadline_s is None:
        return {}
    return {"activeDeadlineSeconds": min(math.ceil(run.deadline_s + run.grace_s) + _MARGIN_S, _MOST)}


def suspended(options: KubernetesOptions) -> bool:
    """Whether it is submitted but not started: Kueue starts what it admits."""
    return options.suspend or options.scheduling.by == "kueue"


def metadata(run: RunSpec, name: str, component: str, options: KubernetesOptions) -> dict[str, Any]:
    """Of an object that makes pods of tasks: what the options say, and what Kueue takes it into a queue by."""
    marks = {**options.run_labels, **labels.of_object(run.run_id, component), **_queue_labels(options)}
    notes = dict(options.run_annotations)
    return {"name": name, "labels": marks, **({"annotations": notes} if notes else {})}


def _queue_labels(options: KubernetesOptions) -> dict[str, str]:
    scheduling = options.scheduling
    if scheduling.by != "kueue":
        return {}
    found = {labels.KUEUE_QUEUE: scheduling.queue, labels.KUEUE_PRIORITY: scheduling.priority_class}
    return {name: value for name, value in found.items() if value}
