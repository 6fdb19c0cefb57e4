"""The labels and annotations by which a run's objects are found."""

from __future__ import annotations

from typing import Final

RUN: Final = "yurt/run"
ROLE: Final = "yurt/role"
NAME: Final = "app.kubernetes.io/name"
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
INSTANCE: Final = "app.kubernetes.io/instance"
COMPONENT: Final = "app.kubernetes.io/component"
YURT: Final = "yurt"
#: Selects everything of Yurt's.
MANAGED: Final = f"{MANAGED_BY}={YURT}"

# Annotations of the owner.
#: The run without its tasks, as JSON (`yurt.contract.packed.head`).
SPEC_NOTE: Final = "yurt/run-spec"
#: How many tasks it has.
TASKS_NOTE: Final = "yurt/tasks"
#: The task that decides its verdict.
DECIDING_NOTE: Final = "yurt/deciding"
#: Which way it goes: ``none`` or ``tfjob``.
WAY_NOTE: Final = "yurt/way"

#: A task's index, as the Job controller and the training operator write it on its pod.
JOB_INDEX: Final = "batch.kubernetes.io/job-completion-index"
TFJOB_INDEX: Final = "training.kubeflow.org/replica-index"

#: Of others: Kueue's queue and priority, Volcano's group.
KUEUE_QUEUE: Final = "kueue.x-k8s.io/queue-name"
KUEUE_PRIORITY: Final = "kueue.x-k8s.io/priority-class"
POD_GROUP: Final = "scheduling.k8s.io/group-name"


def of_object(run_id: str, component: str) -> dict[str, str]:
    """On each object of a run; `component` is its role, or ``keeper``."""
    return {NAME: YURT, MANAGED_BY: YURT, INSTANCE: run_id, COMPONENT: component, RUN: run_id}


def of_pod(run_id: str, role: str) -> dict[str, str]:
    """On each pod of a run."""
    return {**of_object(run_id, role), ROLE: role}
