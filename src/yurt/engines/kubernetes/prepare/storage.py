"""Whether a claim that names no class gets a volume: one default StorageClass, whose provisioner is there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from yurt.engines.finding import Finding, good, unknown, warning
from yurt.engines.kubernetes import kinds
from yurt.engines.kubernetes.prepare.reading import Reading, Value

CHECK: Final = "storage"
_DEFAULT: Final = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")
#: Makes nothing: somebody makes each volume by hand.
_STATIC: Final = "kubernetes.io/no-provisioner"
#: Provisioners that the control plane or the cloud itself runs, unseen in the cluster: their beginnings.
_BUILT_IN: Final = ("kubernetes.io/", "pd.csi.storage.gke.io", "filestore.csi.storage.gke.io")
_WHY: Final = "a claim that names no class stays Pending, and the pods that use it with it"
_EASY: Final = (
    "kubectl apply -f https://raw.githubusercontent.com/rancher/local-path-provisioner/v0.0.31/deploy/"
    "local-path-storage.yaml   # where the cloud brings none"
)


def check(reading: Reading) -> Iterator[Finding]:
    """The classes; whether a volume really comes is shown by the proof."""
    classes = reading.client.list(kinds.STORAGE_CLASS)["items"]
    defaults = [each for each in classes if is_default(each)]
    if not classes:
        yield warning(CHECK, "there is no StorageClass", _WHY, f"{_EASY}\n{_make_default('local-path')}")
    elif not defaults:
        names = [each["metadata"]["name"] for each in classes]
        dynamic = [each["metadata"]["name"] for each in classes if each["provisioner"] != _STATIC]
        what = f"no StorageClass is the default one (there are {', '.join(names)})"
        yield warning(CHECK, what, _WHY, _make_default(dynamic[0]) if dynamic else _EASY)
    elif len(defaults) > 1:
        names = [each["metadata"]["name"] for each in defaults]
        why = "Kubernetes takes the newest of them, which may not be the one that is meant"
        what = f"{len(defaults)} StorageClasses are the default: {', '.join(names)}"
        yield warning(CHECK, what, why, _make_default(names[1], "false"))
    for each in defaults[:1]:
        yield _provisioner(reading, each)


def is_default(storage_class: Value) -> bool:
    """Whether claims that name no class get this one."""
    annotations = storage_class["metadata"].get("annotations") or {}
    return any(annotations.get(key) == "true" for key in _DEFAULT)


def _provisioner(reading: Reading, found: Value) -> Finding:
    name, provisioner = found["metadata"]["name"], found["provisioner"]
    if provisioner == _STATIC:
        what = f"the default StorageClass {name} makes no volumes ({_STATIC})"
        return warning(CHECK, what, f"{_WHY}, until somebody makes a volume by hand", _EASY)
    told = f"the default StorageClass {name} makes volumes ({provisioner})"
    if provisioner.startswith(_BUILT_IN) or _is_driver(reading, provisioner) or _runs(reading, provisioner):
        return good(CHECK, told)
    return unknown(
        CHECK,
        f"the default StorageClass is {name}; nothing that is seen here runs its {provisioner}",
        "if nothing runs it, claims stay Pending",
        "yurt doctor --on kubernetes --prove   # makes a claim",
    )


def _is_driver(reading: Reading, provisioner: str) -> bool:
    """Whether a CSI driver of this name is registered."""
    return reading.client.get(kinds.CSI_DRIVER, provisioner) is not None


def _runs(reading: Reading, provisioner: str) -> bool:
    """Whether a running pod speaks of it: in its arguments and variables, or (rancher.io/local-path) by its name."""
    short = provisioner.rpartition("/")[2]
    for pod in reading.pods:
        containers = pod["spec"]["containers"]
        words = [pod["metadata"]["name"]]
        for each in containers:
            words += [*each.get("args", ()), *each.get("command", ())]
            words += [str(variable.get("value", "")) for variable in each.get("env", ())]
        if pod.get("status", {}).get("phase") == "Running" and any(
            provisioner in word or short in word for word in words
        ):
            return True
    return False


def _make_default(name: str, value: str = "true") -> str:
    text = f'{{"metadata":{{"annotations":{{"{_DEFAULT[0]}":"{value}"}}}}}}'
    return f"kubectl patch storageclass {name} -p '{text}'"
