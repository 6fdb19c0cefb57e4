"""The keeper's job: the pod that keeps the run's state, and the owner of all that the run has in the cluster."""

from __future__ import annotations

import json
from typing import Any, Final

from yurt.contract.packed import head
from yurt.contract.spec import RunSpec
from yurt.engines.kubernetes import labels, names
from yurt.engines.kubernetes.ground import Ground
from yurt.engines.kubernetes.options import KubernetesOptions
from yurt.engines.kubernetes.pod_template import pod_template
from yurt.engines.kubernetes.resources import amounts

#: Of a small Python process. Limits too: a namespace's quota may ask for them.
_REQUESTS: Final = {"cpu": "50m", "memory": "64Mi"}
_LIMITS: Final = {"cpu": "1", "memory": "256Mi"}
#: Times that it may fail, which are hours where it is started again in its pod.
_FAILURES: Final = 100


def keeper_job(run: RunSpec, options: KubernetesOptions, ground: Ground, way: str) -> dict[str, Any]:
    """An Indexed Job of one pod, whose host name so stays the same: the first object of the run."""
    own = options.of(names.KEEPER)
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {
            "name": names.keeper(run.run_id),
            "labels": {**own.labels, **labels.of_object(run.run_id, names.KEEPER)},
            "annotations": {
                labels.SPEC_NOTE: json.dumps(head(run), sort_keys=True),
                labels.TASKS_NOTE: str(len(run.tasks)),
                labels.WAY_NOTE: way,
            },
        },
        "spec": {
            "completionMode": "Indexed",
            "completions": 1,
            "parallelism": 1,
            "backoffLimit": _FAILURES,
            "ttlSecondsAfterFinished": options.keep_s,
            "template": pod_template(
                run,
                names.KEEPER,
                amounts(_REQUESTS, _LIMITS, own),
                options,
                None,
                restart="OnFailure",
                account=account_of(options, ground),
            ),
        },
    }


def account_of(options: KubernetesOptions, ground: Ground) -> str | None:
    """The account by which the keeper acts in the cluster; None where it only keeps the state."""
    if options.keeper_account is not None:
        return options.keeper_account
    return names.KEEPER_ACCOUNT if ground.keeper_account else None
