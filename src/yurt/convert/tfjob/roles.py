"""The roles of a TFJob, whichever version of the shape it has."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from yurt.convert.converted import Note
from yurt.convert.tfjob import fields
from yurt.convert.tfjob.tree import Node, shown
from yurt.job import RoleName
from yurt.job.findings import closest
from yurt.job.names import MOST_REPLICAS

_WORDS: Final = {
    "chief": RoleName.CHIEF,
    "master": RoleName.CHIEF,
    "worker": RoleName.WORKER,
    "ps": RoleName.PS,
    "evaluator": RoleName.EVALUATOR,
    "eval": RoleName.EVALUATOR,
}
_NAMES: Final = ("Chief", "Master", "Worker", "PS", "Evaluator")
#: v1alpha1's own fields of a role.
OLD_REPLICA: Final = ("replicas", "template", "tfPort", "tfReplicaType", "TfReplicaType", "IsDefaultPS")


@dataclass(frozen=True, slots=True)
class Seat:
    """A role and what plays it; without a `template` it is v1alpha1's ps, which runs TensorFlow's own server."""

    role: RoleName
    node: Node
    replicas: int
    template: Node | None
    restart: Node | None


def seats_of(spec: Node, notes: list[Note]) -> list[Seat]:
    """Every role with tasks. Raises UsageError where the roles cannot be made out."""
    old = spec.peek("replicaSpecs")
    found = _old_seats(spec, notes) if old is not None else _seats(spec, notes)
    by_role: dict[RoleName, Seat] = {}
    for seat in found:
        if seat.role in by_role:
            other = by_role[seat.role].node
            seat.node.refuse(f"is the {seat.role} a second time: {other.path} in line {other.line} is one already")
        if not seat.replicas:
            seat.node.plain()
            message = f"has no replicas, so there is no {seat.role}; as a TFJob this fails: the operator starts a pod"
            notes.append(seat.node.note(message))
            continue
        by_role[seat.role] = seat
    if not by_role:
        spec.refuse("has no role with replicas, so nothing would run")
    chief, evaluator = by_role.get(RoleName.CHIEF), by_role.get(RoleName.EVALUATOR)
    if chief and chief.replicas > 1:
        chief.node.refuse(f"has {chief.replicas} replicas, and there can be one {chief.role}")
    if evaluator and evaluator.replicas > 1:
        more = evaluator.replicas - 1
        notes.append(evaluator.node.note(f"has {evaluator.replicas} replicas, and there can be one: {more} left out"))
        by_role[RoleName.EVALUATOR] = Seat(RoleName.EVALUATOR, evaluator.node, 1, evaluator.template, evaluator.restart)
    return [by_role[name] for name in RoleName if name in by_role]


def _seats(spec: Node, notes: list[Note]) -> list[Seat]:
    specs = spec.mapping("tfReplicaSpecs")
    if specs is None:
        spec.refuse(
            "has no tfReplicaSpecs, so nothing would run",
            "is it a part of a kustomization? `kubectl kustomize FOLDER > tfjob.yaml` makes the manifest",
        )
    found = []
    for name, node in specs.value.items():
        if node.value is None:
            continue
        if name.lower() not in _WORDS:
            near = closest(name, [each.lower() for each in _NAMES])
            hint = next((each for each in _NAMES if each.lower() == near), None)
            node.refuse(
                f"is no role of a TFJob; the roles are {', '.join(_NAMES)}", f"did you mean {hint}?" if hint else None
            )
        node.taken = True
        if not isinstance(node.value, dict):
            node.refuse(f"must be a mapping with replicas and a template, not {shown(node)}")
        _tell_strange(node, fields.REPLICA, notes)
        if node.peek("template") is None:
            node.refuse(
                "has no template, so it does not say what runs",
                "is it a part of a kustomization? `kubectl kustomize FOLDER > tfjob.yaml` makes the manifest",
            )
        role = _WORDS[name.lower()]
        found.append(Seat(role, node, _count(node), node.mapping("template"), node.get("restartPolicy")))
    return found


def _old_seats(spec: Node, notes: list[Note]) -> list[Seat]:
    """Of v1alpha1: a list, in which the pod's restartPolicy is the one that counts."""
    found = []
    for node in spec.mappings("replicaSpecs"):
        kind = node.string("tfReplicaType") or node.string("TfReplicaType") or "MASTER"
        role = _WORDS.get(kind.lower())
        if role is None:
            node.refuse(f"has the tfReplicaType {kind}; the roles are MASTER, WORKER and PS")
        _tell_strange(node, OLD_REPLICA, notes)
        node.get("IsDefaultPS")
        template = node.mapping("template")
        if template is None and role is not RoleName.PS:
            node.refuse("has no template, so it does not say what runs")
        pod = None if template is None else template.peek("spec")
        found.append(Seat(role, node, _count(node), template, None if pod is None else pod.get("restartPolicy")))
    return found


def _count(node: Node) -> int:
    replicas = node.peek("replicas")
    count = node.whole("replicas")
    if replicas is not None and count is not None and count > MOST_REPLICAS:
        replicas.refuse(f"must be at most {MOST_REPLICAS:,}")
    return 1 if count is None else count


def _tell_strange(node: Node, known: tuple[str, ...], notes: list[Note]) -> None:
    for name, inner in node.value.items():
        if name not in known and inner.value is not None:
            inner.plain()
            notes.append(fields.strange(inner, fields.REPLICA))
