"""Whether what a user says in Kubernetes' own words has the shape that the API server takes.

A TFJob is taken with almost any pod in it, and then has no pods and no status: nobody says why but an event.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from yurt.engines.kubernetes.fields import fields_of
from yurt.engines.kubernetes.quantities import quantity

#: Fields that take one of a few words (Kubernetes 1.36).
_WORDS: Final = {
    ("Toleration", "operator"): ("Exists", "Equal"),
    ("Toleration", "effect"): ("NoSchedule", "PreferNoSchedule", "NoExecute"),
    ("Container", "imagePullPolicy"): ("Always", "IfNotPresent", "Never"),
    ("Container", "terminationMessagePolicy"): ("File", "FallbackToLogsOnError"),
    ("ContainerPort", "protocol"): ("TCP", "UDP", "SCTP"),
    ("PodSpec", "dnsPolicy"): ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    ("SeccompProfile", "type"): ("RuntimeDefault", "Localhost", "Unconfined"),
    ("AppArmorProfile", "type"): ("RuntimeDefault", "Localhost", "Unconfined"),
    ("SecurityContext", "procMount"): ("Default", "Unmasked"),
    ("PodSecurityContext", "fsGroupChangePolicy"): ("OnRootMismatch", "Always"),
    ("NodeSelectorRequirement", "operator"): ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"),
    ("LabelSelectorRequirement", "operator"): ("In", "NotIn", "Exists", "DoesNotExist"),
    ("TopologySpreadConstraint", "whenUnsatisfiable"): ("DoNotSchedule", "ScheduleAnyway"),
    ("VolumeMount", "mountPropagation"): ("None", "HostToContainer", "Bidirectional"),
}
#: Types of whose fields, beside those named here, one is there and no other. A volume of no kind is an empty folder.
_ONE_OF: Final = {"EnvVarSource": (), "EnvFromSource": ("prefix",), "VolumeProjection": (), "Volume": ("name",)}
_MAY_BE_NOTHING: Final = "Volume"
_PLAIN: Final = {"": (str, "text"), "int": (int, "a whole number"), "bool": (bool, "true or false")}


def faults(value: Any, kind: str, at: str, *, part: bool = False) -> Iterator[str]:
    """Sentences that say where a value is not of a kind of `yurt.engines.kubernetes.fields`; `at` is its key.

    `part`: it goes over what is there already, so that nothing has to be in it.
    """
    if value is None:
        return
    if kind.startswith("["):
        yield from _list_faults(value, kind[1:-1], at)
    elif kind.startswith("{"):
        yield from _mapping_faults(value, kind[1:-1], at)
    elif kind == "quantity":
        if (problem := quantity_fault(value)) is not None:
            yield f"{at}: {problem}"
    elif kind == "port":
        if isinstance(value, bool) or not isinstance(value, int | str):
            yield f"{at} must be a port's number or name, not {_shown(value)}"
    elif kind in ("str", *_PLAIN):
        wanted, words = _PLAIN["" if kind == "str" else kind]
        if not isinstance(value, wanted) or (kind == "int" and isinstance(value, bool)):
            quoted = ": put it in quotes" if wanted is str and isinstance(value, int | float) else ""
            yield f"{at} must be {words}, not {_shown(value)}{quoted}"
    else:
        yield from _type_faults(value, kind, at, part=part)


def quantity_fault(value: Any) -> str | None:
    """Why it is no amount of a resource, as the end of a sentence; None where it is one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return f"{_shown(value)} is no quantity"
    try:
        amount = quantity(value)
    except ValueError as error:
        return str(error)
    return f"{value} is negative" if amount < 0 else None


def _list_faults(value: Any, kind: str, at: str) -> Iterator[str]:
    if not isinstance(value, list | tuple):
        yield f"{at} must be a list, not {_shown(value)}"
        return
    for number, each in enumerate(value):
        if each is None:
            yield f"{at}[{number}] has no value"
        yield from faults(each, kind, f"{at}[{number}]")


def _mapping_faults(value: Any, kind: str, at: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{at} must be a mapping, not {_shown(value)}"
        return
    for key, each in value.items():
        yield from faults(each, kind, f"{at}.{key}")


def _type_faults(value: Any, kind: str, at: str, *, part: bool) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{at} must be a mapping, not {_shown(value)}"
        return
    known = fields_of(kind)
    for key, each in value.items():
        if key not in known:
            yield f"{at}: {key} is no field of a {kind}{_meant(key, known)}"
            continue
        words = _WORDS.get((kind, key))
        if words and isinstance(each, str) and each not in words:
            yield f"{at}.{key} must be one of {', '.join(words)}, not {each}"
        yield from faults(each, known[key].kind, f"{at}.{key}")
    if part:
        return
    for key, field in known.items():
        if field.required and value.get(key) is None:
            yield f"{at} has no {key}"
    if kind in _ONE_OF:
        beside = _ONE_OF[kind]
        told = [key for key, each in value.items() if key in known and key not in beside and each is not None]
        if len(told) > 1:
            yield f"{at} is {' and '.join(told)}, and can be only one of them"
        elif not told and kind != _MAY_BE_NOTHING:
            yield f"{at} must be one of {', '.join(key for key in known if key not in beside)}"
    elif kind == "Toleration":
        yield from _toleration_faults(value, at)


def _toleration_faults(value: Mapping[str, Any], at: str) -> Iterator[str]:
    exists = value.get("operator") == "Exists"
    if not value.get("key") and not exists:
        yield f"{at} has no key: then its operator must be Exists"
    if exists and value.get("value"):
        yield f"{at}: with operator Exists there is no value"
    if value.get("tolerationSeconds") is not None and value.get("effect") != "NoExecute":
        yield f"{at}: tolerationSeconds needs effect NoExecute"


def _meant(key: str, known: Mapping[str, Any]) -> str:
    by_case = {name.lower(): name for name in known}
    lower = key.lower().replace("_", "")
    near = by_case.get(lower) or next(
        (by_case[each] for each in difflib.get_close_matches(lower, by_case, n=1, cutoff=0.7)), None
    )
    return f": did you mean {near}?" if near else ""


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
