"""A task's own place - its role, its index, its address - as a pod is told it and as a Yurt job says it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from yurt.convert.tfjob.containers import PORT
from yurt.convert.tfjob.expansion import names_in
from yurt.convert.tfjob.parts import RoleRead
from yurt.convert.tfjob.tree import Node

INDEX: Final = ("TASK_INDEX", "metadata.labels['training.kubeflow.org/replica-index']")
POD: Final = ("TASK_POD", "metadata.name")
NAMESPACE: Final = ("TASK_NAMESPACE", "metadata.namespace")
#: A task's address in a TFJob without Yurt.
ADDRESS: Final = f"$({POD[0]}).$({NAMESPACE[0]}).svc:{PORT}"
#: Labels of the operator's, old ones too, in which a pod finds its place. The pods of other ways have none of them.
_LABELS: Final = re.compile(r"metadata\.labels\['(?:training\.kubeflow\.org/|tf-)?replica-(?P<what>index|type)'\]")


def placed(words: Sequence[str], role: str) -> tuple[list[str], list[tuple[str, str]]]:
    """Words for a pod, with ``{role}``, ``{index}`` and ``{address}`` as it knows them; the variables for that."""
    fields: dict[tuple[str, str], None] = {}
    found = []
    for word in words:
        made = word.replace("{role}", role)
        if "{index}" in made:
            fields[INDEX] = None
            made = made.replace("{index}", f"$({INDEX[0]})")
        if "{address}" in made:
            fields |= {POD: None, NAMESPACE: None}
            made = made.replace("{address}", ADDRESS)
        found.append(made)
    return found, list(fields)


def without_places(role: RoleRead, words: Sequence[str]) -> tuple[list[str], Mapping[str, str]]:
    """The way back: the words, and variables of the task that stand for its place, by what a Yurt job writes.

    Takes those variables out of `role`; the ones that `placed` made are not among what is returned.
    """
    found: dict[str, str] = {}
    words = [word.replace(ADDRESS, "{address}") for word in words]
    asked = {name for word in words for name in names_in(word)}
    left = []
    for variable in role.variables:
        path = _field(variable.source) if variable.source is not None else ""
        if match := _LABELS.fullmatch(path):
            found[variable.name] = "{index}" if match["what"] == "index" else str(role.name)
        elif (variable.name, path) not in (POD, NAMESPACE) or variable.name in asked:
            left.append(variable)
    role.variables = left
    return words, found


def _field(source: Node) -> str:
    reference = source.mapping("fieldRef")
    if reference is None:
        return ""
    reference.get("apiVersion")
    return reference.string("fieldPath") or ""
