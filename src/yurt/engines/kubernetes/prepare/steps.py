"""What `yurt kubernetes prepare` makes: steps, known before any is taken, each made only where it is missing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from yurt.engines.kubernetes import kinds
from yurt.engines.kubernetes.client import Client, KubernetesError
from yurt.engines.kubernetes.kinds import Kind, kind_of
from yurt.engines.kubernetes.prepare import accounts, manifests
from yurt.engines.kubernetes.prepare.manifests import RELEASE, Source
from yurt.engines.kubernetes.prepare.operator_install import adapted, apply
from yurt.engines.kubernetes.prepare.reading import Reading
from yurt.errors import EngineError, UsageError

Value = Mapping[str, Any]
NONE: Final = "none"
_DEFAULT_CLASS: Final = "storageclass.kubernetes.io/is-default-class"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the user asks for. `operator` is None where it is only wanted if there is none."""

    operator: str | None = None
    operator_image: str | None = None
    manifests: tuple[str, ...] = ()
    default_class: str | None = None
    nodes: tuple[str, ...] = ()
    users: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    service_accounts: tuple[str, ...] = ()
    pod_security: str | None = None


@dataclass(frozen=True, slots=True)
class Step:
    """`what` it makes, for people; `objects` are made as they stand; `missing` those that are not there like this."""

    what: str
    objects: tuple[Value, ...]
    missing: tuple[Value, ...] = field(default=())
    #: Objects of others, of kinds that only the API server knows.
    foreign: bool = False
    operator: bool = False


def plan(reading: Reading, wanted: Wanted, say: Callable[[str], None]) -> list[Step]:
    """All steps, with what each lacks. Reads, and fetches manifests; makes nothing. Raises YurtError."""
    client, space = reading.client, reading.namespace
    named = accounts.subjects(wanted.users, wanted.groups, wanted.service_accounts, space)
    who = "".join(f", for {each['name']}" for each in named)
    found = [_step(client, f"the namespace {space}", [accounts.namespace(space, wanted.pod_security)])]
    found += _class_step(reading, wanted.default_class)
    found += [_foreign(text, say) for text in wanted.manifests]
    if (operator := _operator_step(reading, wanted, say)) is not None:
        found.append(operator)
    found.append(_step(client, "the account yurt-keeper, which submits a lost TFJob again", accounts.keeper(space)))
    found.append(
        _step(client, f"the role yurt-user, the least that running jobs needs{who}", accounts.users(space, named))
    )
    found += _pool_steps(reading, wanted.nodes)
    return found


def refused(reading: Reading, steps: Iterable[Step]) -> list[str]:
    """What this account may not make of it: ``create clusterroles``; empty where it may all."""
    client = reading.client
    asked: dict[tuple[str, str], tuple[Kind, str]] = {}
    for step in steps:
        for value in step.missing:
            kind = _kind(client, value, step)
            space = value["metadata"].get("namespace", reading.namespace)
            asked[kind.plural, space] = (kind, space)
    return [
        f"{verb} {kind.plural}" + (f" in {space}" if kind.namespaced else "")
        for kind, space in asked.values()
        for verb in (("patch",) if kind is kinds.NODE else ("create", "patch"))
        if not client.may(verb, kind, namespace=space)
    ]


def make(client: Client, step: Step) -> int:
    """Make what is missing of a step; how many objects. Raises EngineError."""
    if step.foreign:
        return apply(client, step.missing)
    for value in step.missing:
        try:
            client.apply(value)
        except KubernetesError as error:
            if "attempting to grant" not in str(error):
                raise
            message = (
                f"this account may not make {step.what}: nobody may give away rights that they have not themselves"
            )
            raise EngineError(message, hint="ask who administers the cluster to run this") from error
    return len(step.missing)


def _step(client: Client, what: str, objects: Sequence[Value]) -> Step:
    missing = tuple(each for each in objects if not _is_there(client, each))
    return Step(what, tuple(objects), missing)


def _is_there(client: Client, value: Value) -> bool:
    """Whether the object is there and says all that `value` says."""
    meta, kind = value["metadata"], kind_of(value)
    try:
        found = client.get(kind, meta["name"], meta.get("namespace"))
    except KubernetesError as error:
        if error.status != 403:
            raise
        # A namespace that may not be looked at is taken to be there: what goes into it shows whether it is.
        return kind is kinds.NAMESPACE and "labels" not in meta
    return found is not None and _holds(found, value)


def _holds(found: Any, value: Any) -> bool:
    if isinstance(value, Mapping):
        return isinstance(found, Mapping) and all(key in found and _holds(found[key], value[key]) for key in value)
    return bool(found == value)


def _class_step(reading: Reading, name: str | None) -> Iterator[Step]:
    """Make a class the default one; another that was it is not any more."""
    if name is None:
        return
    classes = reading.client.list(kinds.STORAGE_CLASS)["items"]
    known = [each["metadata"]["name"] for each in classes]
    if name not in known:
        hint = f"there are {', '.join(known)}" if known else "there is none: name a provisioner's manifests by --apply"
        raise UsageError(f"there is no StorageClass {name}", hint=hint)
    from yurt.engines.kubernetes.prepare.storage import is_default

    objects = [
        _marked(each, each["metadata"]["name"] == name)
        for each in classes
        if is_default(each) != (each["metadata"]["name"] == name)
    ]
    yield Step(f"the StorageClass {name} as the default one", tuple(objects), tuple(objects))


def _marked(found: Value, default: bool) -> Value:
    return {
        "apiVersion": kinds.STORAGE_CLASS.api,
        "kind": kinds.STORAGE_CLASS.name,
        "metadata": {
            "name": found["metadata"]["name"],
            "annotations": {_DEFAULT_CLASS: str(default).lower()},
        },
        "provisioner": found["provisioner"],
    }


def _foreign(text: str, say: Callable[[str], None]) -> Step:
    """Manifests that the user names, such as of a storage provisioner or a device plugin."""
    source = manifests.source_of(text)
    if source.release:
        raise UsageError(f"--apply {text}: name a folder, a file or a URL")
    say(f"reading {source.in_words()}")
    objects = tuple(manifests.read(source))
    return Step(f"{len(objects)} objects from {source.in_words()}", objects, objects, foreign=True)


def _operator_step(reading: Reading, wanted: Wanted, say: Callable[[str], None]) -> Step | None:
    if wanted.operator == NONE or (wanted.operator is None and reading.operator_served):
        return None
    source: Source = manifests.source_of(wanted.operator or RELEASE)
    say(f"reading the training operator's manifests: {source.in_words()}")
    objects = manifests.read(source)
    if not any(manifests.defines_tfjobs(each) for each in objects):
        hint = "name manifests that have the definition of tfjobs.kubeflow.org in them"
        raise UsageError(f"{source.in_words()} is not the training operator: it defines no TFJob", hint=hint)
    sent = tuple(adapted(objects, source, wanted.operator_image))
    return Step(f"the Kubeflow training operator, {len(sent)} objects: {source.in_words()}", sent, sent, True, True)


def _pool_steps(reading: Reading, names: Sequence[str]) -> Iterator[Step]:
    """The pool's label on each of the nodes that are named."""
    if not names or reading.pool is None:
        return
    key, value = reading.pool
    known = {each["metadata"]["name"]: each for each in reading.nodes}
    if unknown := [each for each in names if each not in known]:
        raise UsageError(f"there is no node {unknown[0]}", hint=f"there are {', '.join(known)}")
    labelled: dict[str, Value] = {
        each: {"apiVersion": "v1", "kind": "Node", "metadata": {"name": each, "labels": {key: value}}} for each in names
    }
    objects = tuple(labelled.values())
    missing = tuple(each for name, each in labelled.items() if not _holds(known[name], each))
    yield Step(f"the label {key}={value} on {', '.join(names)}", objects, missing)


def _kind(client: Client, value: Value, step: Step) -> Kind:
    """One that is only now defined is not asked about: whoever may define it may use it."""
    if not step.foreign:
        return kind_of(value)
    found = client.kind(value["apiVersion"], value["kind"])
    if found is None and value["apiVersion"].partition("/")[0].count(".") == 0:
        raise EngineError(f"the API server knows no {value['kind']} in {value['apiVersion']}, which the manifests have")
    return found or kind_of(value)
