"""What the API server or the operator's webhook would refuse, and what they would take and never run."""

from __future__ import annotations

from yurt.contract.spec import RunSpec
from yurt.engines.kubernetes.ground import Ground
from yurt.engines.kubernetes.options import KubernetesOptions


def problems(run: RunSpec, options: KubernetesOptions, ground: Ground) -> list[str]:
    """Sentences that name the job file's key; empty where the run can be sent."""
    del options, ground
    found = []
    if run.image is None:
        found.append(f"the job {run.job_name} names no `image`, and Kubernetes needs one")
    return found
