"""The container that trains, as a role."""

from __future__ import annotations

from decimal import Decimal
from typing import Final

from yurt.convert.converted import Note
from yurt.convert.tfjob import fields
from yurt.convert.tfjob.parts import Option, RoleRead, Variable
from yurt.convert.tfjob.tree import Node, shown
from yurt.engines.kubernetes.quantities import quantity

NAME: Final = "tensorflow"
PORT_NAME: Final = "tfjob-port"
PORT: Final = 2222
_GPU: Final = "nvidia.com/gpu"
#: How GPUs were called before Kubernetes 1.10.
_OLD_GPU: Final = "alpha.kubernetes.io/nvidia-gpu"
#: Fields that are carried as Kubernetes has them.
_KEPT: Final = (
    "lifecycle", "livenessProbe", "readinessProbe", "startupProbe", "resizePolicy", "stdin", "stdinOnce", "tty",
    "volumeDevices",
)  # fmt: skip
_OURS: Final = {
    "terminationMessagePath": "is left out: Yurt writes the pod's last word",
    "terminationMessagePolicy": "is left out: Yurt writes the pod's last word",
    "restartPolicy": "is left out: the role's restartPolicy decides",
    "restartPolicyRules": "is left out: the role's restartPolicy decides",
}
_RESERVED: Final = ("YURT_", "TF_CONFIG")


def training_container(pod: Node, notes: list[Note]) -> tuple[Node, list[Node]]:
    """The container called tensorflow, and the others. Raises UsageError where there is none."""
    containers = pod.mappings("containers")
    if not containers:
        pod.refuse("has no containers, so nothing would run")
    named = [each for each in containers if (name := each.peek("name")) and name.value == NAME]
    if len(named) > 1:
        named[1].refuse(f"is a second container called {NAME}")
    if not named and len(containers) > 1:
        names = ", ".join(str(name.value) for each in containers if (name := each.peek("name")))
        pod.refuse(f"has the containers {names}, and none is called {NAME}", f"call the one that trains {NAME}")
    chosen = named[0] if named else containers[0]
    if not named:
        notes.append(chosen.note(f"is taken as the one that trains; the operator wants it called {NAME}"))
    return chosen, [each for each in containers if each is not chosen]


def read_container(role: RoleRead, node: Node, notes: list[Note]) -> None:
    """Fill in what the container says: image, command, variables, resources, mounts and the rest."""
    node.get("name")
    role.image = node.string("image")
    role.command = _words(node, "command")
    role.args = _words(node, "args")
    role.folder = node.string("workingDir")
    role.variables = _variables(node, notes)
    role.variables_from = node.mappings("envFrom")
    role.mounts = node.mappings("volumeMounts")
    if resources := node.mapping("resources"):
        _resources(role, resources, notes)
    _ports(role, node, notes)
    role.put("security_context", node.mapping("securityContext"))
    role.put("image_pull_policy", node.get("imagePullPolicy"))
    for key in _KEPT:
        if inner := node.get(key):
            role.put_more("container", key, inner.plain(), inner)
    for key, message in _OURS.items():
        if inner := node.get(key):
            inner.plain()
            notes.append(inner.note(message))
    for key, inner in node.value.items():
        if key not in fields.CONTAINER and inner.value is not None:
            inner.plain()
            notes.append(fields.strange(inner, fields.CONTAINER))


def _words(node: Node, key: str) -> list[str] | None:
    inner = node.peek(key)
    if inner is not None and isinstance(inner.value, str):
        inner.refuse(f"must be a list of words, not {shown(inner)}", f"write [sh, -c, ...] or [{inner.value}]")
    words = [word.as_text() for word in node.items(key)]
    return words or None


def _variables(node: Node, notes: list[Note]) -> list[Variable]:
    found: dict[str, Variable] = {}
    for entry in node.mappings("env"):
        name = entry.string("name")
        value, source = entry.get("value"), entry.mapping("valueFrom")
        if not name:
            entry.refuse("has no name")
        if name.startswith(_RESERVED):
            entry.plain()
            why = "Yurt writes TF_CONFIG for every task" if name == "TF_CONFIG" else "Yurt sets such names itself"
            notes.append(entry.note(f"{name} is left out: {why}"))
            continue
        if source is not None:
            found.pop(name, None)
            found[name] = Variable(name, None, source, entry)
            continue
        if value is not None and not isinstance(value.value, str | dict | list):
            notes.append(value.note(f"is {value.text} without quotes, which Kubernetes refuses; it is read as text"))
        found.pop(name, None)
        found[name] = Variable(name, "" if value is None else value.as_text(), None, entry)
    return list(found.values())


def _resources(role: RoleRead, node: Node, notes: list[Note]) -> None:
    limits, requests = (_amounts(node, key) for key in ("limits", "requests"))
    for amounts in (limits, requests):
        if old := amounts.pop(_OLD_GPU, None):
            notes.append(old[1].note(f"is called {_GPU} since Kubernetes 1.10, and is read as that"))
            amounts.setdefault(_GPU, old)
    for name, (amount, part) in limits.items():
        asked = requests.get(name)
        if name == "cpu":
            role.cpus = float(amount)
        elif name == "memory":
            role.memory_bytes = int(amount)
        elif name == _GPU:
            if amount != int(amount):
                part.refuse(f"must be a whole number, not {shown(part)}")
            role.gpus = int(amount)
        else:
            role.put_more("limits", name, part.as_text(), part)
        if asked is not None and asked[0] == amount:
            requests.pop(name)
    for name, (amount, part) in requests.items():
        if name == _GPU and _GPU not in limits:  # Kubernetes asks for both alike
            role.gpus = int(amount)
        else:
            role.put_more("requests", name, part.as_text(), part)
    if claims := node.get("claims"):
        role.put_more("container", "resources", {"claims": claims.plain()}, claims)


def _amounts(node: Node, key: str) -> dict[str, tuple[Decimal, Node]]:
    inner = node.mapping(key)
    found = {}
    for name, part in () if inner is None else inner.value.items():
        if part.value is None:
            continue
        part.taken = True
        try:
            amount = quantity(part.as_text())
        except ValueError as error:
            part.refuse(str(error))
        if amount < 0:
            part.refuse(f"must be 0 or more, not {shown(part)}")
        if amount or name not in ("cpu", "memory"):
            found[name] = (amount, part)
    return found


def _ports(role: RoleRead, node: Node, notes: list[Note]) -> None:
    """Ports beside the operator's own are carried; what the others are is for whoever connects from outside."""
    kept = []
    for port in node.mappings("ports"):
        name, number = port.peek("name"), port.peek("containerPort")
        if name is not None and name.value == PORT_NAME:
            for key in ("name", "containerPort", "protocol"):
                port.get(key)
            if number is not None and number.value != PORT:
                notes.append(port.note(f"is {number.text}, and tasks listen at {PORT}: TF_CONFIG says so to all"))
            continue
        kept.append(port)
    if kept:
        role.put_more("container", "ports", [each.plain() for each in kept], kept[0])


def option_of_volumes(role: RoleRead) -> None:
    """Volumes and mounts as the Kubernetes engine takes them."""
    for key, nodes in (("volumes", role.volumes), ("volume_mounts", role.mounts)):
        if nodes:
            role.options[key] = Option([each.plain() for each in nodes], nodes[0])
