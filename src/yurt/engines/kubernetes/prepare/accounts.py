"""The namespace, the accounts and the least roles of runs, as objects. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from yurt.engines.kubernetes.prepare.rights import KEEPER, OF_KEEPERS, OF_OPERATOR_USERS, OF_USERS, USER, Right
from yurt.errors import UsageError

_GROUP: Final = "rbac.authorization.k8s.io"
_LABELS: Final = {"app.kubernetes.io/name": "yurt", "app.kubernetes.io/managed-by": "yurt"}

Value = dict[str, Any]


def namespace(name: str, pod_security: str | None = None) -> Value:
    """The namespace itself; `pod_security` is the level that its pods are held to."""
    labels = {"labels": {"pod-security.kubernetes.io/enforce": pod_security}} if pod_security else {}
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, **labels}}


def keeper(space: str) -> list[Value]:
    """The account by which a run's keeper submits a lost TFJob again, and its role."""
    subject = {"kind": "ServiceAccount", "name": KEEPER, "namespace": space}
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _named(KEEPER, space)},
        _role(KEEPER, space, OF_KEEPERS),
        _binding(KEEPER, space, [subject]),
    ]


def users(space: str, subjects: Sequence[Mapping[str, str]]) -> list[Value]:
    """The role of those who run jobs, and its binding where they are named."""
    role = _role(USER, space, (*OF_USERS, *OF_OPERATOR_USERS))
    return [role, _binding(USER, space, subjects)] if subjects else [role]


def subjects(people: Sequence[str], groups: Sequence[str], accounts: Sequence[str], space: str) -> list[Value]:
    """As bindings name them. `accounts` are ``NAMESPACE:NAME``, or ``NAME`` in the namespace of the runs."""
    found: list[Value] = [{"kind": "User", "name": each, "apiGroup": _GROUP} for each in people]
    found += [{"kind": "Group", "name": each, "apiGroup": _GROUP} for each in groups]
    for each in accounts:
        where, colon, name = each.rpartition(":")
        if not name or (colon and not where):
            raise UsageError(f"--service-account {each!r} is no account", hint="write NAMESPACE:NAME, or NAME")
        found.append({"kind": "ServiceAccount", "name": name, "namespace": where or space})
    return found


def _role(name: str, space: str, rights: Sequence[Right]) -> Value:
    merged: dict[tuple[str, str], Value] = {}
    for each in rights:
        rule = merged.setdefault((each.kind.group, each.resource), {**each.as_rule(), "verbs": []})
        rule["verbs"] += each.verbs
    rules = list(merged.values())
    return {"apiVersion": f"{_GROUP}/v1", "kind": "Role", "metadata": _named(name, space), "rules": rules}


def _binding(name: str, space: str, subjects: Sequence[Mapping[str, str]]) -> Value:
    return {
        "apiVersion": f"{_GROUP}/v1",
        "kind": "RoleBinding",
        "metadata": _named(name, space),
        "roleRef": {"apiGroup": _GROUP, "kind": "Role", "name": name},
        "subjects": [dict(each) for each in subjects],
    }


def _named(name: str, space: str) -> Value:
    return {"name": name, "namespace": space, "labels": dict(_LABELS)}
