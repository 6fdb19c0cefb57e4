"""A run as a TFJob of the Kubeflow training operator (kubeflow.org/v1)."""

from __future__ import annotations

from typing import Any, Final

from yurt.contract.spec import ALL_WORKERS, CHIEF, EVALUATOR, PS, WORKER, RunSpec
from yurt.engines.kubernetes import jobs, names
from yurt.engines.kubernetes.options import TFJOB, KubernetesOptions, Scheduling
from yurt.engines.kubernetes.pod_template import VOLCANO
from yurt.engines.kubernetes.resources import written
from yurt.engines.kubernetes.roles import roles_of, templates

_ROLES: Final = {CHIEF: "Chief", WORKER: "Worker", PS: "PS", EVALUATOR: "Evaluator"}
#: Agents count attempts in the store, and end with 1 past the limit, which is final under this policy. A pod that
#: is killed (137) is made again.
_RESTART: Final = "ExitCode"


def tfjob(run: RunSpec, options: KubernetesOptions) -> dict[str, Any]:
    """The TFJob as it is submitted first; `names.tfjob` says what it is called when it is submitted again."""
    made = dict(templates(run, options, TFJOB))
    all_workers = run.success == ALL_WORKERS and not any(task.role == CHIEF for task in run.tasks)
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": "TFJob",
        "metadata": jobs.metadata(run, names.tfjob(run.run_id), "tfjob", options),
        "spec": {
            "runPolicy": _run_policy(run, options),
            **({"successPolicy": "AllWorkers"} if all_workers else {}),
            "tfReplicaSpecs": {
                _ROLES[tasks[0].role]: {
                    "replicas": len(tasks),
                    "restartPolicy": _RESTART,
                    "template": made[tasks[0].role],
                }
                for tasks in roles_of(run)
            },
        },
    }


def _run_policy(run: RunSpec, options: KubernetesOptions) -> dict[str, Any]:
    return {
        # The operator's own is None: servers and other workers then run on for ever.
        "cleanPodPolicy": options.clean_pod_policy or "Running",
        "ttlSecondsAfterFinished": options.keep_s,
        **jobs.deadline(run),  # the operator looks at it only when something else changes
        "backoffLimit": jobs.failures(run),
        **({"suspend": True} if jobs.suspended(options) else {}),
        **({"schedulingPolicy": _policy(options.scheduling)} if options.scheduling.by == VOLCANO else {}),
        **({"managedBy": options.managed_by} if options.managed_by else {}),
    }


def _policy(scheduling: Scheduling) -> dict[str, Any]:
    found = {
        "minAvailable": scheduling.min_available,
        "queue": scheduling.queue,
        "minResources": written(scheduling.min_resources),
        "priorityClass": scheduling.priority_class,
        "scheduleTimeoutSeconds": scheduling.timeout_s,
    }
    return {name: value for name, value in found.items() if value}
