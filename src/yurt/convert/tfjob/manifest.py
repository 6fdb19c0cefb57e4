"""Which TFJob of a file is meant, and what else is in the file."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NoReturn

from yurt.convert.converted import Note
from yurt.convert.source import Source
from yurt.convert.tfjob import templates
from yurt.convert.tfjob.tree import Node, documents
from yurt.errors import UsageError

KIND: Final = "TFJob"
_KIND: Final = re.compile(r"^kind:[ \t]*[\"']?([A-Za-z]+)", re.MULTILINE)
#: The groups under which TFJobs were served, and the versions of the shape.
_GROUPS: Final = ("kubeflow.org", "tensorflow.org")
_VERSIONS: Final = ("v1", "v1beta2", "v1beta1", "v1alpha2", "v1alpha1")
#: What others of Kubeflow's jobs are for.
_OTHERS: Final = {
    "PyTorchJob": "PyTorch",
    "MPIJob": "MPI",
    "MXJob": "MXNet",
    "XGBoostJob": "XGBoost",
    "PaddleJob": "PaddlePaddle",
    "JAXJob": "JAX",
    "TrainJob": "Kubeflow's Trainer v2, which has no TensorFlow",
    "RayJob": "Ray",
}
#: A pair of escapes for one character, behind whole escapes; and what may stand in JSON and not in YAML, or ends
#: a line there (U+0085).
_PAIR: Final = re.compile(r"(?<!\\)((?:\\\\)*)(\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2})")
_UNKNOWN: Final = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
#: What makes a TFJob of an object that holds one.
_HINTS: Final = {
    "Kustomization": "`kubectl kustomize FOLDER > tfjob.yaml` makes the manifest",
    "Experiment": "the TFJob is in its trialTemplate: write it into a file of its own, with values in its places",
    "Workflow": "the TFJob is in one of its templates: write it into a file of its own",
}


@dataclass(frozen=True, slots=True)
class Manifest:
    """A TFJob, and the data of config maps and secrets that stand beside it in the file, by name."""

    job: Node
    config_maps: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    secrets: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


def manifest_of(source: Source, name: str | None, notes: list[Note]) -> Manifest:
    """The TFJob of a file, by `name` where there are several. Raises UsageError in one sentence where there is none."""
    _check_kinds(source)
    templates.check_text(source)
    found = [each for one in documents(_as_yaml(source)) for each in _flat(one)]
    kinds = [(_kind(each), each) for each in found]
    jobs = [each for kind, each in kinds if kind.lower() == KIND.lower()]
    if not jobs:
        _refuse(source, [kind for kind, _ in kinds])
    job = _chosen(jobs, name, source)
    _check_version(job, notes)
    job.taken = True
    templates.check_structure(job)
    maps: dict[str, dict[str, str]] = {}
    secrets: dict[str, dict[str, str]] = {}
    for kind, each in kinds:
        if each is job:
            continue
        label = f"{kind or 'a document without a kind'} {_name(each)}".strip()
        if each in jobs:
            notes.append(
                each.note(f"the TFJob {_name(each)} is left out: `--job {_name(job)}` is the one that is read")
            )
        elif kind == "ConfigMap":
            maps[_name(each)] = _texts(each, "data")
            notes.append(each.note(f"{label}: Yurt puts none into a cluster; `kubectl apply -f {source.file}` does"))
        elif kind == "Secret":
            secrets[_name(each)] = {**_decoded(each), **_texts(each, "stringData")}
            notes.append(each.note(f"{label}: Yurt puts none into a cluster; `kubectl apply -f {source.file}` does"))
        else:
            notes.append(each.note(f"{label} is left out: it is no TFJob"))
    return Manifest(job, maps, secrets)


def _check_kinds(source: Source) -> None:
    """Raises UsageError where the objects of a YAML text are others, before its templates are looked at."""
    kinds = _KIND.findall(source.text)
    if kinds and not any(kind.lower() in (KIND.lower(), "list", f"{KIND.lower()}list") for kind in kinds):
        _refuse(source, kinds)


def _as_yaml(source: Source) -> Source:
    """JSON as YAML takes it: without tabs, and with its characters and escapes as YAML has them."""
    text = source.text
    if not text.lstrip().startswith("{"):
        return source
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return source
    text = _PAIR.sub(lambda found: found[1] + json.loads(f'"{found[2]}"'), text.replace("\t", " "))
    return Source(source.file, _UNKNOWN.sub(lambda found: f"\\u{ord(found[0]):04x}", text))


def _flat(node: Node) -> list[Node]:
    """The objects of a document: a List holds several."""
    if isinstance(node.value, list):
        return [each for item in node.value for each in _flat(item)]
    if _kind(node).endswith("List") and (items := node.peek("items")) and isinstance(items.value, list):
        return [each for item in items.value if item.value is not None for each in _flat(item)]
    return [node]


def _kind(node: Node) -> str:
    kind = node.peek("kind")
    return kind.value if kind is not None and isinstance(kind.value, str) else ""


def _name(node: Node) -> str:
    metadata = node.peek("metadata")
    name = (metadata.peek("name") or metadata.peek("generateName")) if metadata is not None else None
    return str(name.value) if name is not None else ""


def _chosen(jobs: Sequence[Node], name: str | None, source: Source) -> Node:
    names = ", ".join(_name(job) or "(without a name)" for job in jobs)
    if name is not None:
        named = [job for job in jobs if _name(job) == name]
        if not named:
            raise UsageError(f"{source.file} has no TFJob {name}; it has {names}")
        return named[0]
    if len(jobs) > 1:
        raise UsageError(f"{source.file} holds {len(jobs)} TFJobs: {names}", hint="say which one with --job NAME")
    return jobs[0]


def _check_version(job: Node, notes: list[Note]) -> None:
    kind = job.get("kind")
    if kind is not None and kind.value != KIND:
        notes.append(kind.note(f"is {kind.value}, as it was before Kubeflow: {KIND} since then"))
    version = job.get("apiVersion")
    if version is None:
        notes.append(job.note("has no apiVersion, and is read as kubeflow.org/v1"))
        return
    group, _, number = version.as_text().partition("/")
    if group not in _GROUPS or number not in _VERSIONS:
        version.refuse(f"is {version.text}, and TFJobs are kubeflow.org/{', '.join(_VERSIONS)}")
    if number != "v1":
        notes.append(
            version.note("is no longer served by the operator, which serves kubeflow.org/v1; it is read all the same")
        )


def _texts(node: Node, key: str) -> dict[str, str]:
    inner = node.peek(key)
    items = inner.value.items() if inner is not None and isinstance(inner.value, dict) else ()
    return {name: each.as_text() for name, each in items if not isinstance(each.value, dict | list)}


def _decoded(node: Node) -> dict[str, str]:
    found = {}
    for name, text in _texts(node, "data").items():
        try:
            found[name] = base64.b64decode(text, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            continue  # a key that is not text is no variable
    return found


def _refuse(source: Source, kinds: Sequence[str]) -> NoReturn:
    named = [kind for kind in dict.fromkeys(kinds) if kind]
    if not named:
        raise UsageError(f"{source.file} holds no TFJob")
    first = next((kind for kind in named if kind in _OTHERS), named[0])
    if first in _OTHERS:
        raise UsageError(f"{source.file} is a {first}, for {_OTHERS[first]}; Yurt trains TensorFlow and reads TFJobs")
    hint = _HINTS.get(first)
    raise UsageError(f"{source.file} holds no TFJob; it holds {', '.join(named)}", hint=hint)
