"""The namespace: whether it is there, which pods it takes (pod security), and what is left of its quotas."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from yurt.engines.finding import Finding, good, problem, warning
from yurt.engines.kubernetes import kinds
from yurt.engines.kubernetes.prepare.reading import Reading
from yurt.engines.kubernetes.quantities import in_words, quantity

CHECK: Final = "namespace"
QUOTA_CHECK: Final = "quota"
_ENFORCE: Final = "pod-security.kubernetes.io/enforce"
#: Where a quota counts one of these, a pod that does not say how much it wants is refused.
_MUST_BE_SAID: Final = {
    "requests.cpu": "cpus",
    "cpu": "cpus",
    "limits.cpu": "cpus",
    "requests.memory": "memory",
    "memory": "memory",
    "limits.memory": "memory",
}
#: What the smallest run asks for: its keeper and one task.
_LEAST_PODS: Final = 2


def check(reading: Reading) -> Iterator[Finding]:
    """That it is there and is not going, and its pod security level."""
    space = reading.space
    name = reading.namespace
    if space is None:
        yield problem(CHECK, f"there is no namespace {name}", "a run's objects are made in it", reading.command())
        return
    if space.get("status", {}).get("phase") == "Terminating":
        yield problem(CHECK, f"the namespace {name} is being removed", "nothing can be made in it", "name another one")
        return
    level = (space["metadata"].get("labels") or {}).get(_ENFORCE, "privileged")
    if level == "restricted":
        what = f"the namespace {name} takes restricted pods only"
        why = "pods that do not say that they run as somebody else than root, and without privileges, are refused"
        yield warning(CHECK, what, why, "engines: {kubernetes: {restricted: true}}   # in the job file")
    elif level == "baseline":
        yield good(CHECK, f"the namespace {name} is there; it takes pods of the baseline level: no folders of nodes")
    else:
        yield good(CHECK, f"the namespace {name} is there and takes any pods")
    yield from _mesh(name, space["metadata"].get("labels") or {})


def _mesh(name: str, labels: Mapping[str, str]) -> Iterator[Finding]:
    """Istio's labels: where it puts a proxy beside every container that goes by them, pods of a run do not end."""
    if labels.get("istio-injection") == "enabled" or "istio.io/rev" in labels:
        what = f"a service mesh puts a proxy into each pod of the namespace {name}"
        why = "such a pod does not end with its task, and tasks may not reach each other"
        mend = 'engines: {kubernetes: {annotations: {sidecar.istio.io/inject: "false"}}}   # in the job file'
        yield warning(CHECK, what, why, mend)


def check_quota(reading: Reading) -> Iterator[Finding]:
    """What is left of each ResourceQuota, and what every pod must therefore say; the bounds of LimitRanges."""
    if reading.no_space:
        return
    quotas = reading.client.list(kinds.QUOTA)["items"]
    ranges = reading.client.list(kinds.LIMIT_RANGE)["items"]
    for each in quotas:
        yield _left(each)
    given = _given_by(ranges)
    said = {key: word for each in quotas for key, word in _MUST_BE_SAID.items() if key in _hard(each)}
    silent = sorted({word for key, word in said.items() if not _is_given(key, given)})
    if silent:
        what = f"a quota of the namespace counts {' and '.join(silent)}"
        roles = ", ".join(f"{word}: {'1' if word == 'cpus' else '2 GiB'}" for word in silent)
        why = "a pod that does not say how much it wants is refused"
        yield warning(QUOTA_CHECK, what, why, f"roles: {{worker: {{{roles}}}}}   # in the job file, for each role")
    for bound in _bounds(ranges):
        yield good(QUOTA_CHECK, bound)
    if not quotas and not ranges:
        yield good(QUOTA_CHECK, "the namespace has no quota and no limits")


def _left(found: Mapping[str, Any]) -> Finding:
    """Of one quota, with those first that are used up."""
    name, hard = found["metadata"]["name"], _hard(found)
    used = found.get("status", {}).get("used", {})
    left = {key: quantity(value) - quantity(used.get(key, 0)) for key, value in hard.items()}
    told = ", ".join(f"{in_words(_resource(key), max(value, Decimal(0)))} of {key}" for key, value in left.items())
    pods = left.get("pods", left.get("count/pods"))
    why = "pods beyond it are refused, and a run waits for its tasks until its start deadline"
    mend = f"kubectl describe quota {name} --namespace {found['metadata']['namespace']}   # and end what is not needed"
    empty = [key for key, value in left.items() if value <= 0]
    if empty and not any(key.startswith(("services.", "persistentvolumeclaims", "requests.storage")) for key in empty):
        return problem(QUOTA_CHECK, f"the quota {name} is used up: 0 left of {', '.join(empty)}", why, mend)
    if pods is not None and pods < _LEAST_PODS:
        return problem(QUOTA_CHECK, f"the quota {name} leaves {pods} pod; a run has at least two", why, mend)
    return good(QUOTA_CHECK, f"the quota {name} leaves {told}")


def _hard(found: Mapping[str, Any]) -> Mapping[str, str]:
    hard: Mapping[str, str] = found.get("status", {}).get("hard") or found.get("spec", {}).get("hard", {})
    return hard


def _resource(key: str) -> str:
    return key.rpartition(".")[2] if key.startswith(("requests.", "limits.")) else key


def _given_by(ranges: list[Mapping[str, Any]]) -> set[str]:
    """``requests.cpu`` and so on: what a container that says nothing gets."""
    given = set()
    for each in ranges:
        for limit in each["spec"].get("limits", ()):
            given |= {f"limits.{key}" for key in limit.get("default", ())}
            given |= {f"requests.{key}" for key in (*limit.get("defaultRequest", ()), *limit.get("default", ()))}
    return given


def _is_given(key: str, given: set[str]) -> bool:
    return (key if "." in key else f"requests.{key}") in given


def _bounds(ranges: list[Mapping[str, Any]]) -> Iterator[str]:
    for each in ranges:
        for limit in each["spec"].get("limits", ()):
            parts = [
                f"{word} {key} {value}"
                for word, field in (("at least", "min"), ("at most", "max"))
                for key, value in (limit.get(field) or {}).items()
            ]
            if parts:
                yield f"a {limit.get('type', 'Container').lower()} may have {', '.join(parts)}"
