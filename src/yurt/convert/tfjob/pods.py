"""What the pod template says beside the container that trains."""

from __future__ import annotations

from typing import Final

from yurt.convert.converted import Note
from yurt.convert.tfjob import fields
from yurt.convert.tfjob.containers import PORT, read_container, training_container
from yurt.convert.tfjob.parts import Option, RoleRead
from yurt.convert.tfjob.roles import Seat
from yurt.convert.tfjob.tree import Node, shown
from yurt.job import RestartPolicy

#: Fields of a pod that the engine has options for.
_OPTIONS: Final = {
    "nodeSelector": "node_selector",
    "tolerations": "tolerations",
    "affinity": "affinity",
    "priorityClassName": "priority_class",
    "schedulerName": "scheduler",
    "runtimeClassName": "runtime_class",
    "securityContext": "pod_security_context",
    "initContainers": "init_containers",
}
_OURS: Final = {
    "hostname": "is left out: Yurt names the pods",
    "hostnameOverride": "is left out: Yurt names the pods",
    "setHostnameAsFQDN": "is left out: Yurt names the pods",
    "subdomain": "is left out: Yurt names the pods",
    "ephemeralContainers": "is left out: they cannot stand in a template",
}
#: Fields that the readers below or above take.
_READ: Final = (
    "containers", "restartPolicy", "terminationGracePeriodSeconds", "serviceAccountName", "serviceAccount",
    "imagePullSecrets", "volumes",
)  # fmt: skip
#: What the API server writes into a template or an object by itself.
SERVERS_OWN: Final = frozenset(
    {"creationTimestamp", "uid", "resourceVersion", "generation", "selfLink", "managedFields"}
)
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
_POLICIES: Final = {
    "Never": RestartPolicy.NEVER,
    "OnFailure": RestartPolicy.ON_FAILURE,
    "ExitCode": RestartPolicy.EXIT_CODE,
    "Always": RestartPolicy.ALWAYS,
}


def read_role(seat: Seat, notes: list[Note]) -> RoleRead:
    """What one role's template says. Raises UsageError where it does not say what runs."""
    if seat.template is None:
        seat.node.get("tfPort")
        return RoleRead(seat.role, seat.node, seat.node, seat.replicas, standard_server=True)
    template = seat.template
    pod = template.mapping("spec")
    if pod is None:
        template.refuse("has no spec, so it does not say what runs")
    container, others = training_container(pod, notes)
    role = RoleRead(seat.role, seat.node, container, seat.replicas)
    read_container(role, container, notes)
    _old_port(seat.node, notes)
    role.volumes = pod.mappings("volumes")
    _metadata(role, template, notes)
    for key, option in _OPTIONS.items():
        role.put(option, pod.get(key))
    account = pod.get("serviceAccountName") or pod.get("serviceAccount")
    pod.get("serviceAccount")
    role.put("service_account", account)
    if secrets := pod.mappings("imagePullSecrets"):
        role.options["image_pull_secrets"] = Option([each.string("name") or "" for each in secrets], secrets[0])
    if others:
        role.options["sidecars"] = Option([each.plain() for each in others], others[0])
    if (grace := pod.whole("terminationGracePeriodSeconds")) is not None:
        role.grace_s = float(grace)
    _restart(role, seat, pod, notes)
    for key, message in _OURS.items():
        if inner := pod.get(key):
            inner.plain()
            notes.append(inner.note(message))
    for key, inner in pod.value.items():
        if inner.value is None or key in _OPTIONS or key in _OURS or key in _READ:
            continue
        if key in fields.POD:
            role.put_more("pod", key, inner.plain(), inner)
        else:
            inner.plain()
            notes.append(fields.strange(inner, fields.POD))
    return role


def _metadata(role: RoleRead, template: Node, notes: list[Note]) -> None:
    metadata = template.mapping("metadata") or Node({}, "", template.file, template.line, template.column)
    for key, inner in metadata.value.items():
        if inner.value is None:
            continue
        if key in ("labels", "annotations"):
            texts(metadata, key)
            role.put(key, inner)
        elif key in SERVERS_OWN:
            inner.plain()
        elif key in ("name", "namespace", "generateName"):
            inner.plain()
            notes.append(inner.note("is left out: Yurt names the pods"))
        else:
            inner.plain()
            notes.append(fields.strange(inner, fields.METADATA))
    for key, inner in template.value.items():
        if key not in fields.TEMPLATE and inner.value is not None:
            inner.plain()
            notes.append(fields.strange(inner, fields.TEMPLATE))


def texts(node: Node, key: str) -> dict[str, str]:
    """A mapping of texts, such as labels. Raises UsageError for what Kubernetes would not take as such."""
    inner = node.mapping(key)
    if inner is None:
        return {}
    for each in inner.value.values():
        if not isinstance(each.value, str):
            each.refuse(f"must be text, and {shown(each)} is none", f'quote it: "{each.text}"' if each.text else None)
    found: dict[str, str] = inner.plain()
    return found


def _restart(role: RoleRead, seat: Seat, pod: Node, notes: list[Note]) -> None:
    own, of_pod = seat.restart, pod.get("restartPolicy")
    chosen = own if own is not None else None
    if chosen is not None:
        policy = _POLICIES.get(str(chosen.value))
        if policy is None:
            chosen.refuse(f"must be one of {', '.join(_POLICIES)}, not {shown(chosen)}")
        role.restart = policy
    if of_pod is not None and of_pod is not own and str(of_pod.value) != _word(role.restart):
        message = f"is overwritten by the operator with the role's, {_word(role.restart)}, and means nothing here too"
        notes.append(of_pod.note(message + ("" if own else f": restartPolicy belongs under {seat.node.path}")))


def _word(policy: RestartPolicy) -> str:
    return next(word for word, each in _POLICIES.items() if each is policy)


def _old_port(node: Node, notes: list[Note]) -> None:
    """v1alpha1's tfPort is a named port of the container in later versions."""
    port = node.peek("tfPort")
    number = node.whole("tfPort")
    if port is not None and number not in (None, PORT):
        notes.append(port.note(f"is {number}, and tasks listen at {PORT}: TF_CONFIG says so to all"))
