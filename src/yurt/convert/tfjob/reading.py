"""From a TFJob to one Yurt job, and a note for all that it cannot say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from yurt.convert.converted import Converted, Note
from yurt.convert.source import Source
from yurt.convert.tfjob import fields
from yurt.convert.tfjob.commands import Images, no_images
from yurt.convert.tfjob.elsewhere import place
from yurt.convert.tfjob.ground import KUBERNETES, LOCAL, Ground
from yurt.convert.tfjob.manifest import manifest_of
from yurt.convert.tfjob.parts import RoleRead
from yurt.convert.tfjob.pods import LAST_APPLIED, SERVERS_OWN, read_role, texts
from yurt.convert.tfjob.policy import KUEUE, read_policy
from yurt.convert.tfjob.roles import seats_of
from yurt.convert.tfjob.tree import Node, unread
from yurt.errors import JobError, UsageError
from yurt.job import Job, RoleName
from yurt.job.names import mended
from yurt.job.positions import Reading

if TYPE_CHECKING:
    from pydantic import BaseModel

CHIEF, WORKER, PS, EVALUATOR = RoleName
_SHORTEST_GENERATED: Final = "tfjob"


def read(
    sources: Sequence[Source],
    *,
    name: str | None = None,
    job: str | None = None,
    engine: str | None = None,
    volumes: Mapping[str, str] | None = None,
    given: frozenset[str] = frozenset(),
    images: Images = no_images,
    engine_options: Mapping[str, type[BaseModel]] | None = None,
) -> Converted:
    """One Yurt job from a TFJob's file.

    Args:
        sources: the file; there can be one.
        name: the job's name, instead of the one that the file has.
        job: which TFJob of the file, where there are several.
        engine: where the job is to run at once; without it the job carries all that Kubernetes needs.
        volumes: folders of this machine by the name of the volume that each stands for.
        given: names of environment variables that the command line gives.
        images: what is known here of an image, for containers that leave their command to it.
        engine_options: the pydantic model of each engine's options, by the engine's name, to look at what is made.

    Raises:
        yurt.errors.UsageError: in one sentence, where the file does not make a job, or not one for `engine`.
    """
    if len(sources) > 1:
        raise UsageError(f"a TFJob is one file, and there are {len(sources)}", hint="convert each by itself")
    notes: list[Note] = []
    manifest = manifest_of(sources[0], job, notes)
    node = manifest.job
    spec = node.mapping("spec")
    if spec is None:
        node.refuse("has no spec, so nothing would run")
    roles = [read_role(seat, notes) for seat in seats_of(spec, notes)]
    data, options = read_policy(node, spec, roles, notes)
    _metadata(node, options, notes)
    _strange(node, spec, notes)
    graces = {role.grace_s for role in roles if role.grace_s is not None}
    if graces:
        data["grace"] = max(graces)
        if len(graces) > 1:
            notes.append(node.note(f"terminationGracePeriodSeconds differs; grace is the longest, {max(graces):g} s"))
    ground = Ground(manifest, engine, dict(volumes or {}), given, images)
    engines = place(roles, options, ground, notes)
    roles = _chief_beside_ps(roles, notes)
    data = {"name": name or _name(node, notes), **_common(roles, ground), **data}
    if ground.in_kubernetes:
        engines = {KUBERNETES: {**options, **_kubernetes(roles)}}
    if engine == KUBERNETES:
        engines[KUBERNETES]["prefer_tfjob"] = True
    data["engines"] = {name: given for name, given in engines.items() if given}
    notes += [each.note("is left out: Yurt has nothing like it") for each in unread(node)]
    try:
        made = Job.model_validate(data, context=Reading(engine_options=engine_options or {}))
    except JobError as error:
        first = error.problems[0]
        hint = f"; {first.hint}" if first.hint else ""
        raise UsageError(f"{sources[0].file} makes no Yurt job: {first.key} {first.message}{hint}") from None
    notes.sort(key=lambda note: (note.line or 0, note.column or 0))
    return Converted(made, tuple(dict.fromkeys(notes)))


def _name(node: Node, notes: list[Note]) -> str:
    metadata = node.peek("metadata")
    own = metadata.peek("name") if metadata is not None else None
    generated = metadata.peek("generateName") if metadata is not None else None
    if own is not None:
        name = own.as_text()
    elif generated is not None:
        name = generated.as_text().rstrip("-") or _SHORTEST_GENERATED
        notes.append(generated.note(f"the job is called {mended(name)}, and each of its runs has a name of its own"))
    else:
        name = _SHORTEST_GENERATED
        notes.append(node.note(f"has no name; the job is called {name}"))
    if mended(name) != name and own is not None:
        notes.append(own.note(f"is called {mended(name)}: a name has small letters, digits and -, at most 36 of them"))
    return mended(name)


def _metadata(node: Node, options: dict[str, Any], notes: list[Note]) -> None:
    """Namespace, labels and annotations of the TFJob itself; a queue of Kueue's is among the labels."""
    metadata = node.mapping("metadata")
    if metadata is None:
        return
    for key, inner in metadata.value.items():
        if inner.value is None:
            continue
        if key in ("name", "generateName"):
            inner.as_text()
            inner.taken = True
        elif key == "namespace":
            options["namespace"] = metadata.string("namespace")
        elif key in ("labels", "annotations"):
            given = {name: text for name, text in texts(metadata, key).items() if name != LAST_APPLIED}
            if queue := given.get(KUEUE) if key == "labels" else None:
                del given[KUEUE]
                if "scheduling" in options:
                    notes.append(inner.note(f"{KUEUE}: the schedulingPolicy's queue is left out: Kueue admits the run"))
                options["scheduling"] = {"by": "kueue", "queue": queue}
            if given:
                options[f"run_{key}"] = given
        elif key in SERVERS_OWN:
            inner.plain()
        elif key in ("ownerReferences", "finalizers", "deletionTimestamp", "deletionGracePeriodSeconds"):
            inner.plain()
            notes.append(inner.note("is left out: it is about the object that is in the cluster"))
        else:
            inner.plain()
            notes.append(fields.strange(inner, fields.METADATA))


def _strange(node: Node, spec: Node, notes: list[Note]) -> None:
    """Fields that nobody knows, on the two outermost levels."""
    if status := node.get("status"):
        status.plain()  # the cluster's word on an object that is there
    for inner in spec.value.values():
        if inner.value is not None and not inner.taken:
            inner.plain()
            notes.append(fields.strange(inner, fields.SPEC))
    for key, inner in node.value.items():
        if key in fields.SPEC and inner.value is not None:
            inner.plain()
            notes.append(inner.note(f"is no field here and is left out: it belongs under spec, as spec.{key}"))


def _chief_beside_ps(roles: list[RoleRead], notes: list[Note]) -> list[RoleRead]:
    by_name = {role.name: role for role in roles}
    worker = by_name.get(WORKER)
    if PS not in by_name or CHIEF in by_name or worker is None:
        return roles
    if worker.replicas == 1:
        worker.node.refuse(
            "is one beside a ps, and there is no chief: in Yurt a chief runs the training loop, and workers compute",
            "add a Chief, or a second worker, of which the first becomes the chief",
        )
    notes.append(
        worker.node.note(
            "the first worker becomes the chief, which runs the training loop beside a ps: TF_CONFIG has "
            f"chief/0 and {worker.replicas - 1} of worker"
        )
    )
    chief = replace(worker, name=CHIEF, replicas=1)
    worker.replicas -= 1
    return sorted([chief, *roles], key=lambda role: list(RoleName).index(role.name))


def _common(roles: Sequence[RoleRead], ground: Ground) -> dict[str, Any]:
    """The command, the image, the variables and the roles: what all roles share stands once."""
    commands = Counter(role.words for role in roles if role.words)
    command = commands.most_common(1)[0][0] if commands else None
    env = {key: value for key, value in roles[0].env.items() if all(role.env.get(key) == value for role in roles)}
    images = Counter(role.image for role in roles if role.image)
    image = images.most_common(1)[0][0] if images else None
    for role in roles:
        if role.image and role.image != image:
            own = role.container.peek("image") or role.container
            if ground.in_kubernetes:
                role.put_more("container", "image", role.image, own)
            elif ground.engine != LOCAL:
                own.refuse(f"is {role.image}, and {ground.engine} runs all roles in one image: {image} is another's")
        elif role.image is None and not role.standard_server:
            role.container.refuse("has no image, which the operator refuses", "write image: there")
    data: dict[str, Any] = {
        "command": list(command) if command else None,
        "image": image,
        "roles": {str(role.name): _role(role, command, env) for role in roles},
    }
    if env:
        data["env"] = env
    if ground.engine != LOCAL:
        data["files"] = []
    return data


def _role(role: RoleRead, command: tuple[str, ...] | None, env: Mapping[str, str]) -> dict[str, Any]:
    own = {
        "cpus": role.cpus,
        "memory": role.memory_bytes,
        "gpus": role.gpus,
        "env": {key: value for key, value in role.env.items() if key not in env},
        "command": list(role.words) if role.words and role.words != command else None,
        "standard_server": role.standard_server,
    }
    return {
        "replicas": role.replicas,
        **{key: value for key, value in own.items() if value or (value == 0 and key == "gpus")},
    }


def _kubernetes(roles: Sequence[RoleRead]) -> dict[str, Any]:
    """The options of the pods: once where all roles have the same."""
    shared: dict[str, Any] = {}
    keys = list(dict.fromkeys(key for role in roles for key in role.options))
    own: dict[str, dict[str, Any]] = {str(role.name): {} for role in roles}
    for key in keys:
        values = [role.options[key].value if key in role.options else None for role in roles]
        if all(value == values[0] for value in values):
            shared[key] = values[0]
            continue
        for role, value in zip(roles, values, strict=True):
            if value is not None:
                own[str(role.name)][key] = value
    if any(own.values()):
        shared["roles"] = {name: options for name, options in own.items() if options}
    return shared
