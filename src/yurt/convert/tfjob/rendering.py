"""From a Yurt job to a TFJob that runs without Yurt, wherever the training operator is: kubeflow.org/v1, plain data."""

from __future__ import annotations

import math
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from yurt.convert.converted import Note
from yurt.convert.standard_server import STANDARD_SERVER
from yurt.convert.tfjob.commands import ENTER, SHELL
from yurt.convert.tfjob.containers import NAME, PORT, PORT_NAME
from yurt.convert.tfjob.expansion import kept
from yurt.convert.tfjob.places import placed
from yurt.convert.tfjob.policy import KUEUE
from yurt.engines.kubernetes.merging import plain
from yurt.engines.kubernetes.options import KubernetesOptions, PodOptions
from yurt.errors import UsageError
from yurt.job import Job, RestartPolicy, Role, RoleName, Strategy, SuccessRule
from yurt.job.kinds import KerasChoice

_NAMES: Final = {
    RoleName.CHIEF: "Chief",
    RoleName.WORKER: "Worker",
    RoleName.PS: "PS",
    RoleName.EVALUATOR: "Evaluator",
}
_POLICIES: Final = {
    RestartPolicy.NEVER: "Never",
    RestartPolicy.ON_FAILURE: "OnFailure",
    RestartPolicy.EXIT_CODE: "ExitCode",
    RestartPolicy.ALWAYS: "OnFailure",
}
_GPU: Final = "nvidia.com/gpu"
_KUBERNETES_GRACE_S: Final = 30.0
_MANY: Final = frozenset({Strategy.MULTI_WORKER_MIRRORED, Strategy.PARAMETER_SERVER})
#: Options of the engine that are about how Yurt itself runs there.
_YURTS: Final = (
    "context", "operator", "python", "spread", "node_lost_after_s", "restricted", "checkpoint_claim", "keep",
    "keeper_image", "keeper_account", "prefer_tfjob", "files_through", "git", "requirements", "requirements_on_top",
    "cache_folder",
)  # fmt: skip
#: The longest name of a service: JOB-ROLE-INDEX.
_LONGEST: Final = 63


@dataclass(frozen=True, slots=True)
class TfJob:
    """A job as `kubectl apply` takes it, and what it does not do that Yurt did."""

    body: Mapping[str, Any]
    notes: tuple[Note, ...]


def render(job: Job) -> TfJob:
    """The same roles as a TFJob; pure. Raises UsageError for a job without an image."""
    options = KubernetesOptions.model_validate(job.engines.get("kubernetes", {}))
    if job.image is None:
        raise UsageError(
            f"{job.name} names no image, and a TFJob needs one", hint="write `image: name:tag` into the job"
        )
    labels = dict(options.run_labels)
    if options.scheduling.by == "kueue" and options.scheduling.queue:
        labels[KUEUE] = options.scheduling.queue
    metadata = {
        "name": job.name,
        "namespace": options.namespace,
        "labels": labels,
        "annotations": dict(options.run_annotations),
    }
    all_workers = job.success is SuccessRule.ALL_WORKERS and RoleName.CHIEF not in job.roles
    spec = {
        "runPolicy": _run_policy(job, options),
        "successPolicy": "AllWorkers" if all_workers else None,
        "tfReplicaSpecs": {_NAMES[name]: _replica(job, name, role, options) for name, role in job.roles.items()},
    }
    body = {"apiVersion": "kubeflow.org/v1", "kind": "TFJob", "metadata": _filled(metadata), "spec": _filled(spec)}
    return TfJob(body, tuple(_notes(job, options)))


def _run_policy(job: Job, options: KubernetesOptions) -> dict[str, Any]:
    scheduling = options.scheduling
    given = {
        "minAvailable": scheduling.min_available,
        "queue": scheduling.queue,
        "minResources": dict(scheduling.min_resources),
        "priorityClass": scheduling.priority_class,
        "scheduleTimeoutSeconds": scheduling.timeout_s,
    }
    return _filled(
        {
            # The operator's own is None: servers and other workers then run on for ever.
            "cleanPodPolicy": options.clean_pod_policy or "Running",
            "ttlSecondsAfterFinished": options.keep_s if "keep_s" in options.model_fields_set else None,
            "activeDeadlineSeconds": None if job.deadline_s is None else math.ceil(job.deadline_s),
            "backoffLimit": None if job.restart is RestartPolicy.NEVER else job.max_restarts,
            "schedulingPolicy": _filled(given) if scheduling.by == "volcano" else None,
            "suspend": options.suspend or None,
            "managedBy": options.managed_by,
        }
    )


def _replica(job: Job, name: RoleName, role: Role, options: KubernetesOptions) -> dict[str, Any]:
    own = options.of(str(name))
    metadata = _filled({"labels": dict(own.labels), "annotations": dict(own.annotations)})
    return {
        "replicas": role.replicas,
        "restartPolicy": _POLICIES[job.restart],
        "template": _filled({"metadata": metadata, "spec": _pod(job, name, role, own)}),
    }


def _pod(job: Job, name: RoleName, role: Role, own: PodOptions) -> dict[str, Any]:
    grace = math.ceil(job.grace_s)
    return _filled(
        {
            "initContainers": plain(own.init_containers),
            "containers": [_container(job, name, role, own), *plain(own.sidecars)],
            "volumes": plain(own.volumes),
            "nodeSelector": dict(own.node_selector),
            "tolerations": plain(own.tolerations),
            "affinity": plain(own.affinity),
            "priorityClassName": own.priority_class,
            "schedulerName": own.scheduler,
            "runtimeClassName": own.runtime_class,
            "serviceAccountName": own.service_account,
            "imagePullSecrets": [{"name": each} for each in own.image_pull_secrets],
            "securityContext": plain(own.pod_security_context),
            "terminationGracePeriodSeconds": None if job.grace_s == _KUBERNETES_GRACE_S else grace,
            **plain(own.pod),
        }
    )


def _container(job: Job, name: RoleName, role: Role, own: PodOptions) -> dict[str, Any]:
    words, folder = _without_folder(job.command_for(name) or STANDARD_SERVER)
    words, fields = placed([kept(word) for word in words], str(name))
    more: dict[str, Any] = plain(own.container)
    ports = more.pop("ports", [])
    claims: dict[str, Any] = more.pop("resources", {})
    env: list[dict[str, Any]] = [{"name": key, "value": kept(value)} for key, value in job.env_for(name).items()]
    env += [{"name": key, "valueFrom": {"fieldRef": {"fieldPath": path}}} for key, path in fields]
    return _filled(
        {
            "name": NAME,
            "image": job.image,
            "imagePullPolicy": own.image_pull_policy,
            "command": words,
            "workingDir": folder,
            "env": [*env, *plain(own.env)],
            "envFrom": plain(own.env_from),
            "ports": [{"name": PORT_NAME, "containerPort": PORT}, *ports],
            "resources": _filled(_resources(role, own) | claims),
            "volumeMounts": plain(own.volume_mounts),
            "securityContext": plain(own.security_context),
            **more,
        }
    )


def _without_folder(words: Sequence[str]) -> tuple[list[str], str | None]:
    """The words and the folder in which a shell runs them, where they are as `reading` makes them of a workingDir."""
    if len(words) > 4 and words[:2] == (SHELL, "-c") and words[3] == "sh":
        try:
            line = shlex.split(words[2])
        except ValueError:
            line = []
        if len(line) > 1 and words[2] == ENTER.format(folder=shlex.quote(line[1])):
            return list(words[4:]), line[1]
    return list(words), None


def _resources(role: Role, own: PodOptions) -> dict[str, Any]:
    limits: dict[str, str] = {}
    if role.cpus is not None:
        millis = role.cpus * 1000
        limits["cpu"] = f"{int(role.cpus)}" if role.cpus.is_integer() else f"{math.ceil(round(millis, 6))}m"
    if role.memory_bytes is not None:
        limits["memory"] = _memory(role.memory_bytes)
    if role.gpus is not None:
        limits[_GPU] = str(role.gpus)
    return {"limits": {**limits, **plain(own.limits)}, "requests": plain(own.requests)}


def _memory(size: int) -> str:
    for power, unit in ((4, "Ti"), (3, "Gi"), (2, "Mi"), (1, "Ki")):
        if size % 1024**power == 0:
            return f"{size // 1024**power}{unit}"
    return str(size)


def _filled(given: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in given.items() if value not in (None, "", [], {})}


def _notes(job: Job, options: KubernetesOptions) -> Iterator[Note]:
    """What the TFJob does not do, or not in the same way, by the keys of the Yurt job."""
    tasks = sum(role.replicas for role in job.roles.values())
    for name, role in job.roles.items():
        longest = len(f"{job.name}-{name}-{role.replicas - 1}")
        if longest > _LONGEST:
            yield Note("name", f"{job.name}-{name}-{role.replicas - 1} is too long for the name of a service")
    if job.files:
        yield Note(
            "files", "do not travel with a TFJob: put them into the image, and name the script by its whole path"
        )
    if job.output or job.saves_to:
        yield Note("output", "nothing publishes the model, and the script has no YURT_MODEL_DIR to save to")
    if tasks == 1:
        yield Note("roles", "the operator gives no TF_CONFIG to a TFJob of one task")
    if RoleName.EVALUATOR in job.roles:
        yield Note(
            "roles.evaluator", "the operator lists it in everybody's cluster spec, which TensorFlow 2 does not want"
        )
    if tasks > 1:
        yield Note("start_deadline", "tasks wait for one another without end")
    if job.deadline_s is not None:
        yield Note("deadline", "the operator looks at it only when something else changes: a quiet run may go past it")
    yield from _restart_notes(job)
    if job.success is SuccessRule.ALL_WORKERS and RoleName.CHIEF in job.roles:
        yield Note("success", "beside a chief the operator knows no other rule than the chief's end")
    if job.strategy in _MANY and job.keras is not KerasChoice.OFF:
        yield Note("keras", "the mends for Keras 3 stay behind: see docs/keras.md for what fails without them")
    if job.track:
        yield Note("track", f"nothing logs to {', '.join(job.track)}")
    if job.strategy not in (Strategy.NONE, *_MANY):
        yield Note("strategy", f"the script chooses {job.strategy} by itself")
    if options.scheduling.by == "kueue" and options.scheduling.model_fields_set - {"by", "queue"}:
        yield Note("engines.kubernetes.scheduling", "of it the queue alone is Kueue's")
    unused = [key for key in job.engines.get("kubernetes", {}) if key in _YURTS]
    if unused:
        yield Note("engines.kubernetes", f"{', '.join(unused)}: Yurt's own, left out")
    for engine in job.engines:
        if engine != "kubernetes":
            yield Note(f"engines.{engine}", "left out")


def _restart_notes(job: Job) -> Iterator[Note]:
    many = sum(role.replicas for role in job.roles.values()) > 1
    alone = ", and alone: the others go on with the peers that they had" if many else ""
    if job.restart is RestartPolicy.EXIT_CODE:
        yield Note(
            "restart",
            "the operator starts a task again for exit codes from 128 on, without end and pause: it does not look at "
            f"backoffLimit{alone}",
        )
    elif job.restart is not RestartPolicy.NEVER:
        yield Note("restart", f"the operator starts a failed task again up to {job.max_restarts} times{alone}")
    if job.restart is RestartPolicy.ALWAYS:
        yield Note("restart", "always is written as OnFailure: under the operator's Always no TFJob ever succeeds")
    yield Note("restart", "the loss of a running pod, by a drained node or by hand, fails the whole TFJob")


#: Text that every reader of YAML takes for text without quotes.
PLAIN: Final = re.compile(r"(?!(?:y|n|yes|no|on|off|true|false|null)$)[A-Za-z/][\w./@=-]*", re.IGNORECASE)
