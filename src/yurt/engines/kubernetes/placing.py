"""Why the scheduler finds no node for a pod, from its message: what was asked, and what there is.

The message is of Kubernetes 1.36: ``0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated
taint {k: v}. no new claims to deallocate, preemption: ...``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Final

from yurt.engines.kubernetes.diagnosis import Around, Diagnosis, Value, short
from yurt.engines.kubernetes.quantities import in_words, quantity

_HEAD: Final = re.compile(r"^0/(\d+) nodes are available: ?")
_TAIL: Final = re.compile(r"\.? ?(?:no new claims to deallocate|preemption: ).*$|\. not found\.?$")
_TERM: Final = re.compile(r"(\d+) (.*?)(?=, \d+ |$)")
_TAINT: Final = re.compile(r"untolerated taint\(?s?\)?(?: \{(?P<key>[^:}]*): ?(?P<value>[^}]*)\})?")
_SILENT_NODE: Final = ("node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready")
_EFFECTS: Final = ("NoSchedule", "NoExecute")
_WORDS: Final = {
    "node(s) didn't have free ports for the requested pod ports": "have the port taken that it asks for",
    "node(s) were unschedulable": "are cordoned",
    "Too many pods": "have as many pods as they may",
    "node(s) had volume node affinity conflict": "cannot reach its volume, which is bound to another node or zone",
    "node(s) didn't find available persistent volumes to bind": "have no volume that its claim could be bound to",
    "node(s) exceed max volume count": "have as many volumes as they may",
    "node(s) didn't match pod topology spread constraints": "would break its topology spread constraints",
    "node(s) didn't satisfy existing pods anti-affinity rules": "have a pod that wants none of this kind beside it",
}


def unplaced(pod: Value, message: str, around: Around) -> Diagnosis:
    """For a pod whose condition ``PodScheduled`` is False with the reason ``Unschedulable``."""
    if (found := _of_claims(pod, message, around)) is not None:
        return found
    if nominated := (pod.get("status") or {}).get("nominatedNodeName"):
        return Diagnosis(f"it has no node yet: pods of a lower priority on {nominated} make room for it")
    head = _HEAD.match(message)
    if head is None:
        return Diagnosis(f"it has no node: {short(message)}")
    total = int(head[1])
    if total == 0:
        return Diagnosis("it has no node: the cluster has none that is ready")
    terms = _TERM.findall(_TAIL.sub("", message[head.end() :]).rstrip(". "))
    if not terms:
        return Diagnosis(f"it has no node: {short(message[head.end() :])}")
    parts = [_term(int(count), text, total, pod, around) for count, text in terms]
    if (event := around.last_event(pod["metadata"]["name"], "TriggeredScaleUp", "NotTriggerScaleUp")) is not None:
        coming = event["reason"] == "TriggeredScaleUp"
        parts.append("the autoscaler makes a node" if coming else f"the autoscaler: {short(event['message'])}")
    return Diagnosis(f"it has no node: {'; '.join(parts)}")


def asked(pod: Value, resource: str) -> Decimal:
    """What a pod's containers request of a resource together, as the scheduler counts."""
    spec = pod.get("spec") or {}
    beside = sum((_request(each, resource) for each in spec.get("containers") or ()), Decimal(0))
    first = Decimal(0)
    for each in spec.get("initContainers") or ():
        if each.get("restartPolicy") == "Always":
            beside += _request(each, resource)
        else:
            first = max(first, _request(each, resource))
    return max(beside, first) + quantity((spec.get("overhead") or {}).get(resource, 0))


def free(nodes: Iterable[Value], pods: Iterable[Value], resource: str) -> dict[str, Decimal]:
    """What each node that takes pods has left of a resource."""
    left = {
        node["metadata"]["name"]: quantity((node["status"].get("allocatable") or {}).get(resource, 0))
        for node in nodes
        if not (node.get("spec") or {}).get("unschedulable")
    }
    for pod in pods:
        name = (pod.get("spec") or {}).get("nodeName")
        if name in left and (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
            left[name] -= asked(pod, resource)
    return left


def _request(container: Value, resource: str) -> Decimal:
    resources = container.get("resources") or {}
    amount = (resources.get("requests") or {}).get(resource)
    return quantity((resources.get("limits") or {}).get(resource, 0) if amount is None else amount)


def _term(count: int, text: str, total: int, pod: Value, around: Around) -> str:
    where = f"{count} of {total} nodes"
    if text.startswith("Insufficient "):
        return _too_little(text.removeprefix("Insufficient "), where, pod, around)
    if (taint := _TAINT.search(text)) is not None:
        return _tainted(taint["key"], taint["value"], where, pod, around)
    if "node affinity/selector" in text:
        return f"{where} lack {_selection(pod)}"
    if "anti-affinity rules" in text and "existing" not in text:
        return f"{where} have another task of the run (`spread: required`, or its affinity, wants a node each)"
    return f"{where} {_WORDS.get(text, f'are ruled out: {short(text)}')}"


def _too_little(resource: str, where: str, pod: Value, around: Around) -> str:
    amount = asked(pod, resource)
    said = f"{where} have too little {resource}: it asks for {in_words(resource, amount)}"
    if not around.nodes:
        return said
    has = free(around.nodes, (), resource)
    if not has:
        return said
    largest = max(has, key=lambda name: has[name])
    if has[largest] == 0:
        plugin = ", is its device plugin missing?" if "/" in resource else ""
        return f"{said}, and no node has any{plugin}"
    if amount > has[largest]:
        return f"{said}, and no node has as much: the largest, {largest}, has {in_words(resource, has[largest])}"
    if around.pods is None:
        return f"{said}; the largest, {largest}, has {in_words(resource, has[largest])} when it is empty"
    left = free(around.nodes, around.pods, resource)
    roomiest = max(left, key=lambda name: left[name])
    rest = in_words(resource, max(left[roomiest], Decimal(0)))
    return f"{said}, and the most that is free is {rest} on {roomiest}"


def _tainted(key: str | None, value: str | None, where: str, pod: Value, around: Around) -> str:
    taints = _hindering(pod, around.nodes or ())
    if not taints and key is not None:
        taints = [{"key": key.strip(), "value": (value or "").strip()}]
    if taints and all(each["key"] in _SILENT_NODE for each in taints):
        return f"{where} are not ready"
    if not taints:
        return f"{where} have a taint that it does not tolerate; see `tolerations` under `engines: kubernetes:`"
    names = ", ".join(_taint_in_words(each) for each in taints)
    tolerations = ", ".join(_toleration(each) for each in taints if each["key"] not in _SILENT_NODE)
    return f"{where} have a taint that it does not tolerate ({names}); to go there: `tolerations: [{tolerations}]`"


def _hindering(pod: Value, nodes: Sequence[Value]) -> list[Mapping[str, str]]:
    """Taints that keep this pod away, each once."""
    found: list[Mapping[str, str]] = []
    for node in nodes:
        for taint in (node.get("spec") or {}).get("taints") or ():
            kept = {name: taint.get(name) or "" for name in ("key", "value", "effect")}
            if kept["effect"] in _EFFECTS and not _tolerated(pod, kept) and kept not in found:
                found.append(kept)
    return found


def _tolerated(pod: Value, taint: Mapping[str, str]) -> bool:
    for each in (pod.get("spec") or {}).get("tolerations") or ():
        same_key = each.get("key") in (None, "", taint["key"])
        same_value = each.get("operator") == "Exists" or (each.get("value") or "") == taint["value"]
        if same_key and same_value and each.get("effect") in (None, "", taint["effect"]):
            return True
    return False


def _taint_in_words(taint: Mapping[str, str]) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    effect = f":{taint['effect']}" if taint.get("effect") else ""
    return f"{taint['key']}{value}{effect}"


def _toleration(taint: Mapping[str, str]) -> str:
    value = f"value: {taint['value']}" if taint.get("value") else "operator: Exists"
    effect = f", effect: {taint['effect']}" if taint.get("effect") else ""
    return f"{{key: {taint['key']}, {value}{effect}}}"


def _selection(pod: Value) -> str:
    """The labels that the pod asks for, as it says."""
    spec = pod.get("spec") or {}
    labels = [f"{key}={value}" for key, value in (spec.get("nodeSelector") or {}).items()]
    node = (spec.get("affinity") or {}).get("nodeAffinity") or {}
    terms = (node.get("requiredDuringSchedulingIgnoredDuringExecution") or {}).get("nodeSelectorTerms") or ()
    wanted = " or ".join(
        " and ".join(_expression(each) for each in (*term.get("matchExpressions", ()), *term.get("matchFields", ())))
        for term in terms
    )
    parts = [f"the label{'s' * (len(labels) > 1)} {', '.join(labels)} of its node selector"] if labels else []
    parts += [f"what its node affinity asks for ({wanted})"] if wanted else []
    return " or ".join(parts) or "what its node affinity asks for"


def _expression(value: Value) -> str:
    values = ", ".join(map(str, value.get("values") or ()))
    return " ".join(filter(None, (value["key"], value["operator"], f"[{values}]" if values else "")))


def _of_claims(pod: Value, message: str, around: Around) -> Diagnosis | None:
    if (missing := re.search(r'persistentvolumeclaim "([^"]+)" not found', message)) is not None:
        return Diagnosis(f"its claim {missing[1]} does not exist: make it, or name another")
    if (going := re.search(r'persistentvolumeclaim "([^"]+)" is being deleted', message)) is not None:
        return Diagnosis(f"its claim {going[1]} is being deleted")
    if "unbound immediate PersistentVolumeClaims" not in message:
        return None
    names = [
        each["persistentVolumeClaim"]["claimName"]
        for each in (pod.get("spec") or {}).get("volumes") or ()
        if "persistentVolumeClaim" in each
    ]
    parts = [_unbound(name, (around.claims or {}).get(name), around) for name in names]
    return Diagnosis("; ".join(filter(None, parts)) or f"its claims {', '.join(names)} are not bound to volumes")


def _unbound(name: str, claim: Value | None, around: Around) -> str:
    if claim is not None and (claim.get("status") or {}).get("phase") == "Bound":
        return ""
    event = around.last_event(name, "FailedBinding", "ProvisioningFailed", "ExternalProvisioning")
    message = short(event["message"]) if event else ""
    spec = (claim or {}).get("spec") or {}
    if "no storage class is set" in message or (claim is not None and spec.get("storageClassName") in (None, "")):
        return (
            f"its claim {name} is not bound to a volume: it names no storage class and the cluster has no default one"
            " (`yurt doctor --on kubernetes` says how to get one)"
        )
    if (missing := re.search(r'storageclass\S* "([^"]+)" not found', message)) is not None:
        return f"its claim {name} is not bound to a volume: there is no storage class {missing[1]}"
    return f"its claim {name} is not bound to a volume" + (f": {message}" if message else "")
