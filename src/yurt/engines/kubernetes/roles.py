"""A run's roles on this engine: which way they go, and the pods of each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from yurt.contract.spec import ROLES, RunSpec, TaskSpec
from yurt.engines.kubernetes import labels
from yurt.engines.kubernetes.ground import Ground
from yurt.engines.kubernetes.options import AUTO, NONE, TFJOB, KubernetesOptions
from yurt.engines.kubernetes.pod_template import VOLCANO, pod_template
from yurt.engines.kubernetes.resources import resources


def way_of(options: KubernetesOptions, ground: Ground) -> str:
    """`TFJOB` or `NONE`; nobody's choice is `NONE`, unless the file was a TFJob's and TFJobs are served."""
    if options.operator == AUTO and options.prefer_tfjob and ground.tfjobs is not False:
        return TFJOB
    return TFJOB if options.operator == TFJOB else NONE


def roles_of(run: RunSpec) -> list[list[TaskSpec]]:
    """The tasks of each role that has any."""
    found = [[task for task in run.tasks if task.role == role] for role in ROLES]
    return [tasks for tasks in found if tasks]


def templates(run: RunSpec, options: KubernetesOptions, way: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each role and its pods' template.

    Jobs leave a failed pod as it is and make another. A TFJob says the policy itself, and for its pods' group too.
    """
    operated = way == TFJOB
    for tasks in roles_of(run):
        role = tasks[0].role
        own = options.of(role)
        yield (
            role,
            pod_template(
                run,
                role,
                resources(tasks[0], own),
                options,
                labels.TFJOB_INDEX if operated else labels.JOB_INDEX,
                restart=None if operated else "Never",
                account=own.service_account,
                grouped=options.scheduling.by == VOLCANO and not operated,
            ),
        )
