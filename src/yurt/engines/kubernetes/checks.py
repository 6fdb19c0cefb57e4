"""What the API server or the operator's webhook would refuse, and what they would take and never run.

The operator's webhook looks at little (1.9.3): most of what is wrong in a TFJob is taken, and then nothing happens and
no status says why. Of a Job the API server looks at all of the pod.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from yurt.contract.spec import CHIEF, RunSpec
from yurt.engines.kubernetes import names, shape
from yurt.engines.kubernetes.ground import Ground
from yurt.engines.kubernetes.keeper_job import keeper_job
from yurt.engines.kubernetes.options import TFJOB, KubernetesOptions, PodOptions
from yurt.engines.kubernetes.pod_checks import misfits
from yurt.engines.kubernetes.restricted import refused
from yurt.engines.kubernetes.roles import roles_of, templates, way_of

#: The first version whose Job controller writes the index of a pod as a label.
_OLDEST: Final = (1, 28)
_SIDECARS: Final = (1, 29)
_KEY: Final = "engines: kubernetes: "
#: The most that a secret holds (Kubernetes 1.36), less what else is in the order.
_LARGEST_ORDER_BYTES: Final = 1_000_000
#: Of a TFJob's managedBy (its webhook, 1.9.3).
_MANAGERS: Final = ("kubeflow.org/training-operator", "kueue.x-k8s.io/multikueue")
#: What is in each option that is in Kubernetes' own words.
_KINDS: Final = {
    "tolerations": "[Toleration]",
    "affinity": "Affinity",
    "volumes": "[Volume]",
    "volume_mounts": "[VolumeMount]",
    "env": "[EnvVar]",
    "env_from": "[EnvFromSource]",
    "security_context": "SecurityContext",
    "pod_security_context": "PodSecurityContext",
    "init_containers": "[Container]",
    "sidecars": "[Container]",
    "container": "Container",
    "pod": "PodSpec",
}
#: Fields that an option is for, by that option; and those that are Yurt's to say, by None.
_SAID_ELSEWHERE: Final[Mapping[str, Mapping[str, str | None]]] = {
    "container": {
        "name": None,
        "command": None,
        "args": None,
        "restartPolicy": None,
        "env": "env",
        "envFrom": "env_from",
        "volumeMounts": "volume_mounts",
        "imagePullPolicy": "image_pull_policy",
        "securityContext": "security_context",
    },
    "pod": {
        "containers": "sidecars",
        "initContainers": "init_containers",
        "restartPolicy": None,
        "hostname": None,
        "subdomain": None,
        "volumes": "volumes",
        "nodeSelector": "node_selector",
        "tolerations": "tolerations",
        "affinity": "affinity",
        "priorityClassName": "priority_class",
        "priority": "priority_class",
        "preemptionPolicy": "priority_class",
        "schedulerName": "scheduler",
        "runtimeClassName": "runtime_class",
        "serviceAccountName": "service_account",
        "serviceAccount": "service_account",
        "imagePullSecrets": "image_pull_secrets",
        "securityContext": "pod_security_context",
        # fields of a container, which are often put here
        "image": "container",
        "ports": "container",
        "env": "env",
        "envFrom": "env_from",
        "volumeMounts": "volume_mounts",
        "limits": "limits",
        "requests": "requests",
        "resources": "limits",
        "imagePullPolicy": "image_pull_policy",
    },
}


def problems(run: RunSpec, options: KubernetesOptions, ground: Ground) -> list[str]:
    """Sentences that name the job file's key; empty where the run can be sent."""
    found = [
        *_run_problems(run, way_of(options, ground)),
        *(_KEY + text for text in _option_problems(run, options, ground)),
    ]
    levels: list[tuple[str, PodOptions]] = [
        ("", options),
        *((f"roles: {role}: ", own) for role, own in options.roles.items()),
    ]
    shapeless = [_KEY + at + text for at, own in levels for text in _shape_problems(own)]
    return [*found, *(shapeless or _pod_problems(run, options, ground))]


def _run_problems(run: RunSpec, way: str) -> Iterator[str]:
    if not run.tasks:
        yield f"roles: the job {run.job_name} has no tasks"
    chiefs = sum(task.role == CHIEF for task in run.tasks)
    if chiefs > 1:
        yield f"roles: chief: there can be one, not {chiefs}"
    run_id = re.sub(r"-RUN$", "-run", run.run_id)  # `yurt render` has it for what an id ends in
    # The longest of all: a pod of the last submission of a TFJob, which is a service too.
    last = {task.role: max(each.index for each in run.tasks if each.role == task.role) for task in run.tasks}
    first = names.tfjob(run_id, run.max_restarts) if way == TFJOB else run_id
    for name in (
        names.service(run_id),
        names.keeper(run_id),
        *(f"{first}-{role}-{index}" for role, index in last.items()),
    ):
        if (rule := names.broken_rule(name)) is not None:
            yield f"name: {name}, made of the job's name, {rule}"
    size = len(json.dumps(run.to_json(), separators=(",", ":")))
    if size > _LARGEST_ORDER_BYTES:
        yield (
            f"roles: the commands and variables of {len(run.tasks)} tasks are {size / 2**20:.1f} MiB, and the secret "
            "that holds them 1 MiB at most: shorten command or env"
        )


def _option_problems(run: RunSpec, options: KubernetesOptions, ground: Ground) -> Iterator[str]:
    if ground.older_than(*_OLDEST):
        yield f"the cluster is Kubernetes {ground.version}, and pods know their index since {_OLDEST[0]}.{_OLDEST[1]}"
    if way_of(options, ground) == TFJOB:
        if ground.tfjobs is False:
            yield (
                "operator: the cluster serves no TFJob (kubeflow.org/v1); `yurt kubernetes prepare` installs the "
                "operator, and operator: none needs none"
            )
        if options.managed_by is not None and options.managed_by not in _MANAGERS:
            yield f"managed_by: {options.managed_by} is none that the operator takes: {' or '.join(_MANAGERS)}"
    if options.namespace is not None and (rule := names.broken_rule(options.namespace)) is not None:
        yield f"namespace: {options.namespace} {rule}"
    keeper = options.roles.get("keeper")
    if keeper is not None and keeper.service_account is not None:
        yield "roles: keeper: service_account: say it as keeper_account"
    told = {each["name"] for role in roles_of(run) for each in options.of(role[0].role).env}
    if twice := sorted(told & {name for task in run.tasks for name in task.env}):
        yield f"env: {', '.join(twice)}: also in the job's own env; leave out one of them"
    if ground.older_than(*_SIDECARS) and any(own.sidecars for own in (options, *options.roles.values())):
        yield f"sidecars: Kubernetes {ground.version} has none; they came with 1.29"
    yield from _scheduling_problems(run, options, way_of(options, ground))


def _scheduling_problems(run: RunSpec, options: KubernetesOptions, way: str) -> Iterator[str]:
    scheduling = options.scheduling
    if scheduling.by == "kueue":
        if scheduling.queue is None:
            yield "scheduling: queue: Kueue needs one, the name of a LocalQueue"
        for name in ("min_available", "min_resources", "timeout_s"):
            if name in scheduling.model_fields_set:
                yield f"scheduling: {name}: Kueue admits a job whole and has no such thing"
    if scheduling.by == "volcano" and way != TFJOB and scheduling.timeout_s is not None:
        yield "scheduling: timeout_s: Volcano's groups have no such thing; the job's start_deadline ends the wait"
    if (scheduling.min_available or 0) > len(run.tasks):
        yield f"scheduling: min_available: {scheduling.min_available} of {len(run.tasks)} tasks never come together"
    for name, amount in scheduling.min_resources.items():
        if (fault := shape.quantity_fault(amount)) is not None:
            yield f"scheduling: min_resources: {name}: {fault}"


def _shape_problems(own: PodOptions) -> Iterator[str]:
    for option, kind in _KINDS.items():
        value: Any = getattr(own, option)
        if option in _SAID_ELSEWHERE:
            elsewhere = _SAID_ELSEWHERE[option]
            for key in value.keys() & elsewhere.keys():
                other = elsewhere[key]
                yield f"{option}: {key}: " + (f"say it as {other}" if other else "that is Yurt's to say")
            value = {key: each for key, each in value.items() if key not in elsewhere}
            if option == "container" and isinstance(amounts := value.get("resources"), Mapping):
                for key in ("limits", "requests"):
                    if key in amounts:
                        yield f"container: resources.{key}: say it as {key}"
        yield from shape.faults(value, kind, option, part=not kind.startswith("["))
    for number, each in enumerate(own.sidecars):
        if isinstance(each, Mapping) and each.get("restartPolicy") not in (None, "Always"):
            yield f"sidecars[{number}]: restartPolicy: a sidecar runs until the task ends: leave it out"


def _pod_problems(run: RunSpec, options: KubernetesOptions, ground: Ground) -> list[str]:
    """Of each role's pods as they will be; what is said of all of them is said once."""
    way = way_of(options, ground)
    made = dict(templates(run, options, way))
    made[names.KEEPER] = keeper_job(run, options, ground, way)["spec"]["template"]
    roles: dict[str, list[str]] = {}
    for role, template in made.items():
        for text in (*misfits(template), *(refused(template["spec"]) if options.restricted else ())):
            roles.setdefault(text, []).append(role)
    return [_placed(text, whose, len(made) - 1) for text, whose in roles.items()]


def _placed(text: str, whose: list[str], tasks: int) -> str:
    """With the roles whose pods it is about, unless it is about those of all tasks."""
    if text.startswith("image: "):  # the job's own
        return text
    if sum(role != names.KEEPER for role in whose) == tasks:
        return f"{_KEY}{text}"
    return f"{_KEY}{text} (in the pods of {', '.join(whose)})"
