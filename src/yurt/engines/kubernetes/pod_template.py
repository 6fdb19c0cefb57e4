"""The pods of a role, and the keeper's: the same in both ways but for the label of a task's index."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final

from yurt.contract.spec import RunSpec
from yurt.engines.kubernetes import container, labels, names, security
from yurt.engines.kubernetes.merging import merged, plain
from yurt.engines.kubernetes.options import KubernetesOptions

#: Seconds beyond a task's grace time that its agent needs to say how it ended.
_REPORT_S: Final = 5
_NODE: Final = "kubernetes.io/hostname"
_LOST: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
VOLCANO: Final = "volcano"

Amounts = Mapping[str, Mapping[str, str]]


def pod_template(
    run: RunSpec,
    role: str,
    amounts: Amounts,
    options: KubernetesOptions,
    index_label: str | None,
    *,
    restart: str | None,
    account: str | None,
    grouped: bool = False,
) -> dict[str, Any]:
    """``{"metadata", "spec"}`` of a role's pods, or of the keeper.

    `amounts` are its resources, `index_label` is where a task's index stands; `restart` is the pods' policy, where it
    is theirs to say, `account` the one that they run as. `grouped`: they are of the run's Volcano group.
    """
    own = options.of(role)
    annotations = {**own.annotations, **({labels.POD_GROUP: names.pod_group(run.run_id)} if grouped else {})}
    spec: dict[str, Any] = {
        "restartPolicy": restart,
        "terminationGracePeriodSeconds": math.ceil(run.grace_s) + _REPORT_S,
        # Hundreds of variables that nobody reads, where a namespace has many services.
        "enableServiceLinks": False,
        "serviceAccountName": account,
        "automountServiceAccountToken": account is not None,
        # The pods of a TFJob have names of their own.
        "subdomain": None if index_label == labels.TFJOB_INDEX else names.service(run.run_id),
        "initContainers": [
            *(_beside(each, options) for each in own.init_containers),
            *({**_beside(each, options), "restartPolicy": "Always"} for each in own.sidecars),
        ],
        "containers": [container.container(run, role, amounts, options, index_label)],
        "volumes": container.volumes(run.run_id, role, options),
        "nodeSelector": dict(own.node_selector),
        "tolerations": tolerations(own.tolerations, options.node_lost_after_s),
        "affinity": merged(_spread(run, role, options), own.affinity),
        "priorityClassName": own.priority_class,
        "schedulerName": own.scheduler or (VOLCANO if grouped else None),
        "runtimeClassName": own.runtime_class,
        "imagePullSecrets": [{"name": name} for name in own.image_pull_secrets],
        "securityContext": security.of_pod(own.pod_security_context, restricted=options.restricted),
    }
    return {
        "metadata": said({"labels": {**own.labels, **labels.of_pod(run.run_id, role)}, "annotations": annotations}),
        "spec": merged(said(spec), own.pod),
    }


def said(value: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that have a value: ``False`` and 0 are values."""
    return {name: each for name, each in value.items() if each is not None and each not in ("", [], {})}


def tolerations(theirs: Sequence[Mapping[str, Any]], lost_after_s: int) -> list[dict[str, Any]]:
    """The user's, and how long a node that is lost is waited for: Kubernetes itself waits 300 s."""
    told = {each.get("key") for each in theirs}
    own = [
        {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": lost_after_s}
        for key in _LOST
        if key not in told
    ]
    found: list[dict[str, Any]] = [*plain(theirs), *own]
    return found


def _spread(run: RunSpec, role: str, options: KubernetesOptions) -> dict[str, Any]:
    """Away from the run's other tasks; the keeper needs no node of its own."""
    if options.spread == "off" or role == names.KEEPER or len(run.tasks) == 1:
        return {}
    term = {
        "topologyKey": _NODE,
        "labelSelector": {
            "matchLabels": {labels.RUN: run.run_id},
            "matchExpressions": [{"key": labels.ROLE, "operator": "NotIn", "values": [names.KEEPER]}],
        },
    }
    if options.spread == "required":
        return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    weighted = {"weight": 100, "podAffinityTerm": term}
    return {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [weighted]}}


def _beside(theirs: Mapping[str, Any], options: KubernetesOptions) -> dict[str, Any]:
    """A container before the task, or beside it: one beside it as an init container that goes on.

    As an ordinary container it would keep the pod, and so a TFJob, running for ever.
    """
    context = security.of_container(theirs.get("securityContext") or {}, restricted=options.restricted)
    return {**plain(theirs), **({"securityContext": context} if context else {})}
