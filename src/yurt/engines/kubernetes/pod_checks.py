"""What is wrong with a pod's template as a whole: names that collide, volumes that are missing, amounts of no sense.

The templates are those that are sent, so that what Yurt makes is checked together with what the user adds.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from yurt.engines.kubernetes import names
from yurt.engines.kubernetes.quantities import quantity
from yurt.engines.kubernetes.resources import is_counted
from yurt.engines.kubernetes.shape import quantity_fault

_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_QUALIFIED: Final = re.compile(
    r"(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?/)?[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?"
)
_VALUE: Final = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?")
_PORT_NAME: Final = re.compile(r"(?=.*[a-z])[a-z0-9]+(-[a-z0-9]+)*")
_LONGEST_PORT_NAME: Final = 15
#: A reference to an image, as container engines read it.
_IMAGE: Final = re.compile(
    r"(?:[A-Za-z0-9.-]+(?::\d+)?/|\[[0-9a-fA-F:]+\](?::\d+)?/)?"
    r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[A-Za-z][A-Za-z0-9+._-]*:[0-9a-fA-F]{32,})?"
)
_YURTS: Final = "/yurt"
#: Amounts of which there are no thousandths; ``memory: 512m`` is half a byte.
_WHOLE: Final = ("memory", "ephemeral-storage")


def misfits(template: Mapping[str, Any]) -> Iterator[str]:
    """Sentences, each beginning with the option that it is about."""
    spec = template["spec"]
    yield from _label_misfits(template["metadata"], spec)
    yield from _volume_misfits(spec)
    beside = spec.get("initContainers") or ()
    main = spec["containers"][0]
    yield from _name_misfits([main, *beside])
    yield from _port_misfits(main.get("ports") or ())
    for each in (main, *beside):
        yield from _container_misfits(each, {volume.get("name") for volume in spec["volumes"]}, ours=each is main)
    if spec.get("hostNetwork") and spec.get("dnsPolicy") != "ClusterFirstWithHostNet":
        yield "pod: with hostNetwork a pod does not know the names of its peers; add dnsPolicy: ClusterFirstWithHostNet"


def image_fault(image: Any) -> str | None:
    """Why it is no reference to an image: a pod with such a one waits for ever (InvalidImageName)."""
    if not isinstance(image, str) or not _IMAGE.fullmatch(image):
        return f"{image!r} is no name of an image"
    return None


def qualified(key: str) -> bool:
    """Whether Kubernetes takes it as the key of a label or an annotation, or as a resource."""
    return _QUALIFIED.fullmatch(key) is not None


def _label_misfits(meta: Mapping[str, Any], spec: Mapping[str, Any]) -> Iterator[str]:
    for option, values in (("labels", meta.get("labels") or {}), ("node_selector", spec.get("nodeSelector") or {})):
        for key, value in values.items():
            if not qualified(key):
                yield f"{option}: {key!r} is no key of a label"
            elif not isinstance(value, str) or not _VALUE.fullmatch(value):
                yield f"{option}: {key}: {value!r} is no value of a label: at most 63 letters, digits, -, _ and ."
    for key in meta.get("annotations") or {}:
        if not qualified(key.lower()):
            yield f"annotations: {key!r} is no key of an annotation"


def _volume_misfits(spec: Mapping[str, Any]) -> Iterator[str]:
    seen: set[str] = set()
    for each in spec["volumes"]:
        name = each["name"]
        if not _LABEL.fullmatch(name) or len(name) > names.LONGEST:
            yield f"volumes: {name!r} cannot be the name of a volume: small letters, digits and -"
        if name in seen:
            ours = " (names with yurt- are Yurt's)" if name.startswith("yurt-") else ""
            yield f"volumes: {name} is there twice{ours}"
        seen.add(name)


def _name_misfits(containers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    for each in containers:
        name = each["name"]
        if not _LABEL.fullmatch(name) or len(name) > names.LONGEST:
            yield f"containers: {name!r} cannot be the name of a container: small letters, digits and -"
        if name in seen:
            yield f"containers: two of a pod are called {name}"
        seen.add(name)


def _port_misfits(ports: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    seen: set[Any] = set()
    for each in ports:
        name, number = each.get("name"), each["containerPort"]
        if not name:
            yield f"container: port {number} has no name, and the training operator needs one"
        elif len(name) > _LONGEST_PORT_NAME or not _PORT_NAME.fullmatch(name):
            yield f"container: {name!r} cannot be the name of a port: at most 15 small letters, digits and -"
        if not 0 < number < 1 << 16:
            yield f"container: there is no port {number}"
        for one in (name, (number, each.get("protocol", "TCP"))):
            if one and one in seen:
                shown = one if isinstance(one, str) else number
                yield f"container: two of the ports are {shown} ({names.PORT_NAME} {names.PORT} is Yurt's)"
            seen.add(one)


def _container_misfits(each: Mapping[str, Any], volumes: set[Any], *, ours: bool) -> Iterator[str]:
    at = "" if ours else f"{each['name']}: "
    if (image := each.get("image")) is None:
        yield "image: the job names none, and Kubernetes needs one" if ours else f"{at}it names no image"
    elif (fault := image_fault(image)) is not None:
        yield f"image: {fault}" if ours else f"{at}image: {fault}"
    yield from (f"{at}{text}" for text in _mount_misfits(each.get("volumeMounts") or (), volumes, ours=ours))
    yield from (f"{at}{text}" for text in _env_misfits(each.get("env") or ()))
    yield from (f"{at}{text}" for text in _amount_misfits(each.get("resources") or {}))


def _mount_misfits(mounts: Sequence[Mapping[str, Any]], volumes: set[Any], *, ours: bool) -> Iterator[str]:
    seen: set[str] = set()
    for each in mounts:
        name, path = each["name"], "/" + each["mountPath"].strip("/")
        if name not in volumes:
            yield f"volume_mounts: {path} is to show {name}, and no volume is called so"
        if path in seen:
            yield f"volume_mounts: two are at {path}"
        seen.add(path)
        within = path in ("/", _YURTS) or path.startswith(f"{_YURTS}/")
        if ours and within and not str(name).startswith("yurt-"):
            yield f"volume_mounts: {path} is where Yurt's own files are"
        if each.get("subPath") and each.get("subPathExpr"):
            yield f"volume_mounts: {path} has both subPath and subPathExpr"


def _env_misfits(env: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    seen: set[str] = set()
    for each in env:
        if each["name"] in seen:
            yield f"env: {each['name']} is there twice"
        seen.add(each["name"])
        if each.get("value") and each.get("valueFrom"):
            yield f"env: {each['name']} has both value and valueFrom"


def _amount_misfits(resources: Mapping[str, Any]) -> Iterator[str]:
    parts = {part: resources.get(part) or {} for part in ("requests", "limits")}
    sound = True
    for part, amounts in parts.items():
        for name, amount in amounts.items():
            fault = None if qualified(name) else "is no name of a resource"
            fault = fault or quantity_fault(amount) or _unwhole(name, amount)
            if fault is not None:
                sound = False
                yield f"{part}: {name}: {fault}"
    if not sound:
        return
    for name in parts["requests"].keys() & parts["limits"].keys():
        asked, most = parts["requests"][name], parts["limits"][name]
        if is_counted(name) and quantity(asked) != quantity(most):
            yield f"requests: {name} must be the same in requests and limits, not {asked} and {most}"
        elif quantity(asked) > quantity(most):
            yield (
                f"requests: {name} is {asked}, more than its limit of {most} (a role's cpus and memory are both, "
                "unless requests and limits say otherwise)"
            )


def _unwhole(name: str, amount: Any) -> str | None:
    if quantity(amount) % 1 == 0:
        return None
    if name in _WHOLE:
        text = str(amount)
        meant = f": did you mean {text[:-1]}Mi?" if text.endswith("m") else ""
        return f"{amount} is a part of a byte{meant}"
    return f"{amount} is not whole, and it is not shared out in parts" if is_counted(name) else None
