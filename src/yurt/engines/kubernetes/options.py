"""What may stand under ``engines: kubernetes:``. Keys in Yurt's words; what is inside them in Kubernetes' own."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from yurt.engines.kubernetes.merging import merged
from yurt.engines.kubernetes.names import KEEPER
from yurt.engines.travel.options import TravelOptions

#: Beginnings of variables that are Yurt's.
RESERVED: Final = ("YURT_", "TF_CONFIG")
Objects = tuple[Mapping[str, Any], ...]

# Which way a run goes.
AUTO: Final = "auto"
TFJOB: Final = "tfjob"
NONE: Final = "none"

#: What the pod that keeps a run's state has of that of all.
_ALSO_KEEPERS: Final = frozenset({
    "node_selector", "tolerations", "affinity", "priority_class", "image_pull_secrets", "image_pull_policy", "labels",
    "annotations", "security_context", "pod_security_context",
})  # fmt: skip


class PodOptions(BaseModel):
    """What a role's pods have beside the task; said for all roles, and for one role under `roles`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    requests: Mapping[str, str | float] = Field(
        default_factory=dict,
        description="Resources asked for beside the role's cpus, memory and gpus, or in their place.",
    )
    limits: Mapping[str, str | float] = Field(
        default_factory=dict, description="Resources that are the most, such as nvidia.com/gpu or ephemeral-storage."
    )
    node_selector: Mapping[str, str] = Field(default_factory=dict, description="Labels that a node must have.")
    tolerations: Objects = Field(default=(), description="Taints that are no hindrance, in Kubernetes' words.")
    affinity: Mapping[str, Any] = Field(default_factory=dict, description="Affinity, in Kubernetes' words.")
    priority_class: str | None = Field(default=None, description="The priority class.")
    scheduler: str | None = Field(default=None, description="The scheduler, such as volcano.")
    runtime_class: str | None = Field(default=None, description="The runtime class, such as nvidia.")
    service_account: str | None = Field(default=None, description="The account that the tasks' pods run as.")
    image_pull_secrets: tuple[str, ...] = Field(default=(), description="Secrets for the images' registry.")
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] | None = Field(
        default=None, description="When the image is pulled."
    )
    labels: Mapping[str, str] = Field(default_factory=dict, description="Labels of the pods.")
    annotations: Mapping[str, str] = Field(
        default_factory=dict, description="Annotations of the pods, such as a service mesh reads."
    )
    volumes: Objects = Field(default=(), description="Volumes of the pods, in Kubernetes' words.")
    volume_mounts: Objects = Field(default=(), description="Where the tasks see them, in Kubernetes' words.")
    env: Objects = Field(
        default=(), description="Variables whose values are in the cluster: name and valueFrom, in Kubernetes' words."
    )
    env_from: Objects = Field(default=(), description="Config maps and secrets that are all variables.")
    security_context: Mapping[str, Any] = Field(default_factory=dict, description="The container's security context.")
    pod_security_context: Mapping[str, Any] = Field(default_factory=dict, description="The pod's security context.")
    init_containers: Objects = Field(default=(), description="Containers that run before the task.")
    sidecars: Objects = Field(default=(), description="Containers that run beside the task.")
    container: Mapping[str, Any] = Field(
        default_factory=dict, description="More of the task's container, in Kubernetes' words."
    )
    pod: Mapping[str, Any] = Field(default_factory=dict, description="More of the pods' specification.")

    @field_validator("env")
    @classmethod
    def _named(cls, env: Objects) -> Objects:
        for each in env:
            name = str(each.get("name", ""))
            if not re.fullmatch(r"[-._a-zA-Z][-._a-zA-Z0-9]*", name) or name.startswith(RESERVED):
                raise ValueError(f"{name!r} cannot be a variable here: {', '.join(RESERVED)} are taken")
        return env


class Scheduling(BaseModel):
    """How a gang's pods are admitted together, where the cluster has something for it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: Literal["kueue", "volcano"] | None = Field(default=None, description="Which of them the cluster has.")
    queue: str | None = Field(default=None, description="The queue (Kueue's LocalQueue, Volcano's Queue).")
    min_available: int | None = Field(default=None, ge=1, description="Pods that must fit together; without it all.")
    min_resources: Mapping[str, str | float] = Field(default_factory=dict, description="What they need together.")
    priority_class: str | None = Field(default=None, description="The gang's priority class.")
    timeout_s: int | None = Field(default=None, ge=1, description="Seconds until a gang that does not fit is given up.")

    @model_validator(mode="after")
    def _of_one(self) -> Scheduling:
        if self.by is None and self.model_fields_set - {"by"}:
            raise ValueError("say `by: kueue` or `by: volcano`")
        return self


class KubernetesOptions(TravelOptions, PodOptions):
    """Options of the Kubernetes engine."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    context: str | None = Field(default=None, description="The kubeconfig's context; without it the current one.")
    namespace: str | None = Field(default=None, description="The namespace; without it the context's.")
    operator: Literal["auto", "tfjob", "none"] = Field(
        default=AUTO, description="tfjob: as a TFJob of the training operator; none: without any operator."
    )
    python: str | None = Field(
        default=None, description="The image's Python, 3.11 or later, if it is not python3 on its PATH."
    )
    spread: Literal["preferred", "required", "off"] = Field(
        default="preferred", description="Whether each task should have, or must have, a node of its own."
    )
    node_lost_after_s: int = Field(
        default=30, ge=0, description="Seconds after which the pods of a node that does not answer are given up."
    )
    restricted: bool = Field(
        default=False, description="Whether the pods keep to the restricted pod security standard."
    )
    checkpoint_claim: str | None = Field(
        default=None, description="A claim that all pods may write to at once: checkpoints are kept in it."
    )
    scheduling: Scheduling = Field(default_factory=Scheduling, description="How the pods are admitted together.")
    keep_s: int = Field(
        default=86400, ge=0, description="Seconds for which an ended run that nobody has fetched stays in the cluster."
    )
    keep_model_s: int = Field(
        default=3600, ge=0, description="Seconds for which a pod stays whose model could not be published."
    )
    keep: bool = Field(default=False, description="Whether a run's objects stay until keep_s has passed in any case.")
    suspend: bool = Field(default=False, description="Whether the run is submitted but not started.")
    clean_pod_policy: Literal["None", "Running", "All"] | None = Field(
        default=None, description="A TFJob's cleanPodPolicy: which pods the operator removes at the end; Running."
    )
    managed_by: str | None = Field(default=None, description="A TFJob's managedBy.")
    prefer_tfjob: bool = Field(
        default=False,
        description="Whether `operator: auto` is tfjob where TFJobs are served, as it is for a TFJob's file.",
    )
    run_labels: Mapping[str, str] = Field(
        default_factory=dict, description="Labels of the run's own objects, its TFJob or its Jobs."
    )
    run_annotations: Mapping[str, str] = Field(
        default_factory=dict, description="Annotations of the run's own objects, its TFJob or its Jobs."
    )
    keeper_image: str | None = Field(
        default=None, description="The image of the pod that keeps the run's state; without it the job's."
    )
    keeper_account: str | None = Field(
        default=None,
        description="The account by which that pod submits a lost TFJob again; without it yurt-keeper, where it is.",
    )
    roles: Mapping[Literal["chief", "worker", "ps", "evaluator", "keeper"], PodOptions] = Field(
        default_factory=dict,
        description="What one role's pods have beside that of all; lists are added. keeper: the pod that keeps the "
        "run's state.",
    )

    @model_validator(mode="after")
    def _kept(self) -> KubernetesOptions:
        if self.cache_folder is not None and not any(
            self.cache_folder.startswith(str(each.get("mountPath", "?"))) for each in self.volume_mounts
        ):
            raise ValueError("cache_folder must be below the mountPath of one of volume_mounts: a pod keeps nothing")
        return self

    def of(self, role: str) -> PodOptions:
        """What this role's pods have: its own beside that of all. Mappings are merged, lists added, the role's wins.

        The keeper, which is no task, has of that of all only what decides where a pod may be and as whom it runs.
        """
        own = self.roles.get(role)  # type: ignore[call-overload]
        found: dict[str, Any] = {}
        for name in PodOptions.model_fields:
            common = getattr(self, name)
            if role == KEEPER and name not in _ALSO_KEEPERS:
                common = PodOptions.model_fields[name].get_default(call_default_factory=True)
            if own is None or name not in own.model_fields_set:
                found[name] = common
            elif isinstance(common, tuple):
                found[name] = (*common, *getattr(own, name))
            else:
                found[name] = merged(common, getattr(own, name))
        return PodOptions(**found)
