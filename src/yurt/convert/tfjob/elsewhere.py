"""Where a TFJob runs decides what of its pods can be kept: in the cluster all of it, elsewhere what has a place there.

What cannot be carried is told; what would change what the training is, is refused with the way round it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from yurt.convert.converted import Note
from yurt.convert.standard_server import STANDARD_SERVER
from yurt.convert.tfjob.commands import Images, tell_about, words_of, written
from yurt.convert.tfjob.containers import option_of_volumes
from yurt.convert.tfjob.expansion import expanded, kept, names_in, partly, shell_word
from yurt.convert.tfjob.manifest import Manifest
from yurt.convert.tfjob.parts import Option, RoleRead, Variable
from yurt.convert.tfjob.places import INDEX, without_places
from yurt.convert.tfjob.tree import Node
from yurt.errors import UsageError
from yurt.job import RoleName
from yurt.job.names import ENV_PATTERN

KUBERNETES: Final = "kubernetes"
LOCAL: Final = "local"
DOCKER: Final = "docker"
NOMAD: Final = "nomad"
TF_CONFIG: Final = "TF_CONFIG"
#: The working folder of the image, as the agent in a pod finds it and tells its task.
IMAGE_FOLDER: Final = "YURT_IMAGE_FOLDER"
#: A variable of the shell that starts a task: the folder where the task works.
_HERE: Final = "yurt_here"
_SCRIPTS: Final = (".py", ".sh")
#: Options without which the training is another one, or none.
_NEEDED: Final = {
    "init_containers": (
        "runs before the training, and {engine} runs none",
        "do by hand what it does and take it out, or run on Kubernetes",
    ),
}
#: Options that go without harm elsewhere; those not here are told each by itself.
_OF_CLUSTER: Final = frozenset(
    {
        "node_selector", "tolerations", "affinity", "priority_class", "scheduler", "runtime_class", "service_account",
        "image_pull_secrets", "image_pull_policy", "labels", "annotations", "security_context", "pod_security_context",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ground:
    """Where the job will run, and what is at hand there.

    `engine` is None where the job is only written down, for Kubernetes. `volumes` are folders of this machine by the
    names of volumes, `given` the variables that the command line gives.
    """

    manifest: Manifest
    engine: str | None
    volumes: Mapping[str, str]
    given: frozenset[str]
    images: Images

    @property
    def in_kubernetes(self) -> bool:
        """Whether pods of Kubernetes run the roles."""
        return self.engine in (None, KUBERNETES)


@dataclass(frozen=True, slots=True)
class Mount:
    """Where a container sees a volume: a `folder` of this machine, or, without one, an empty folder of the task."""

    volume: str
    path: str
    folder: str | None
    read_only: bool
    node: Node


def place(roles: list[RoleRead], options: dict[str, Any], ground: Ground, notes: list[Note]) -> dict[str, Any]:
    """Settle each role's words, variables and volumes for the place; the options of the engine there.

    Raises UsageError for what the place cannot give.
    """
    engines: dict[str, Any] = {}
    if ground.in_kubernetes:
        if ground.volumes:
            raise _unused_volume(next(iter(ground.volumes)), "volumes are the cluster's own there")
        for role in roles:
            if not role.standard_server:
                _keep(role, ground, notes)
        return engines
    known = {str(name.value) for role in roles for each in role.volumes if (name := each.peek("name"))}
    for name in ground.volumes:
        if name not in known:
            raise _unused_volume(name, f"the volumes are {', '.join(sorted(known)) or 'none'}")
    binds: list[str] = []
    for role in roles:
        for bind in () if role.standard_server else _settle(role, ground, notes):
            if bind not in binds:
                binds.append(bind)
    _tell_left_out(roles, options, ground, notes)
    if ground.engine == DOCKER and binds:
        engines[DOCKER] = {"volumes": binds}
    elif ground.engine == NOMAD:
        engines[NOMAD] = {"driver": "docker", **({"config": {"volumes": binds}} if binds else {})}
        if binds:
            message = f"{', '.join(binds)}: the Docker driver of Nomad's clients has to allow it (volumes.enabled)"
            notes.append(roles[0].node.note(message))
    return engines


def _unused_volume(name: str, why: str) -> UsageError:
    return UsageError(f"--volume {name}: {why}")


def _keep(role: RoleRead, ground: Ground, notes: list[Note]) -> None:
    """In Kubernetes: variables of the cluster stay the cluster's, volumes are carried as they are."""
    words, own = without_places(role, written(role, ground.images, notes))
    values: dict[str, str] = dict(own)
    late: dict[str, Any] = {}
    for variable in role.variables:
        text = variable.text or ""
        if variable.source is not None:
            late[variable.name] = {"name": variable.name, "valueFrom": variable.source.look()}
        elif any(name in late and name not in values for name in names_in(text)):
            late[variable.name] = {"name": variable.name, "value": partly(text, values)}
        else:
            values[variable.name] = expanded(text, values)
            if not re.fullmatch(ENV_PATTERN, variable.name):
                late[variable.name] = {"name": variable.name, "value": kept(values[variable.name])}
    if late:
        role.options["env"] = Option(list(late.values()), role.container.peek("env") or role.container)
    if role.variables_from:
        role.options["env_from"] = Option([each.plain() for each in role.variables_from], role.variables_from[0])
    option_of_volumes(role)
    # What the image or a config map brings may be asked for too: only the pod knows.
    asked = {name for word in words for name in names_in(word)} if role.variables_from else set()
    folder = shlex.quote(role.folder) if role.folder else None
    if folder is None and ground.engine == KUBERNETES:
        folder = f'"${{{IMAGE_FOLDER}:-.}}"'
    _finish(role, words_of(words, values, {TF_CONFIG, *asked, *late}, folder=folder, first=_exports(own)), notes)
    role.env = {name: text for name, text in values.items() if name not in late and name not in own}


def _settle(role: RoleRead, ground: Ground, notes: list[Note]) -> Iterator[str]:
    """Elsewhere: everything is known before the start, or refused. Yields what a container engine has to mount."""
    words, own = without_places(role, written(role, ground.images, notes))
    if ground.engine == DOCKER and role.folder is None and role.image and (facts := ground.images(role.image)):
        role.folder = facts.folder if facts.folder not in ("", "/") else None
    values: dict[str, str] = dict(own)
    for name, text, node in _variables(role, ground):
        if not re.fullmatch(ENV_PATTERN, name):
            notes.append(node.note(f"{name} is left out: it is no name for a variable outside of Kubernetes"))
            continue
        values.pop(name, None)
        values[name] = expanded(text, values)
    mounts = list(_mounts(role, ground))
    moved = {each.path: kept(each.folder or "") or f"$({_HERE})/{each.volume}" for each in mounts if _moves(each, ground)}
    if ground.engine == LOCAL:
        moved |= _scripts_beside(role, words, moved, notes)
        _need_folder(role, moved)
    folder = shlex.quote(expanded(_moved(role.folder, moved), {})) if role.folder else None
    text = " ".join([*words, *values.values()])
    values = {name: _moved(kept(value), moved) for name, value in values.items()}
    here = {name: value for name, value in values.items() if _HERE in names_in(value)}
    values = {name: expanded(value, {}) for name, value in values.items() if name not in here}
    first = _exports(own)
    if volumes := [each.volume for each in mounts if each.path in moved and each.folder is None]:
        first += f'{_HERE}="$PWD"; mkdir -p {shlex.join(volumes)}; '
    first += "".join(f"export {name}={shell_word(value, {}, {_HERE})}; " for name, value in here.items())
    words = [_moved(word, moved) for word in words]
    _finish(role, words_of(words, values, {TF_CONFIG, _HERE, *here}, folder=folder, first=first), notes)
    role.env = {name: value for name, value in values.items() if name not in own}
    for mount in mounts:
        if mount.path in moved:
            _tell_moved(mount, changed=_moved(text, {mount.path: ""}) != text, notes=notes)
        elif mount.folder is not None and ground.engine != LOCAL:
            yield f"{mount.folder}:{mount.path}" + (":ro" if mount.read_only else "")


def _finish(role: RoleRead, words: tuple[str, ...], notes: list[Note]) -> None:
    if words == STANDARD_SERVER and role.name in (RoleName.PS, RoleName.WORKER):
        role.standard_server = True
        return
    role.words = words
    tell_about(role, notes)


def _exports(own: Mapping[str, str]) -> str:
    """What a shell says before the words: variables that hold a task's place, filled in for each task."""
    return "".join(f"export {name}={text}; " for name, text in own.items() if name != INDEX[0])


def _need_folder(role: RoleRead, moved: Mapping[str, str]) -> None:
    if role.folder and not Path(_moved(role.folder, moved)).is_dir():
        at = role.container.peek("workingDir") or role.container
        at.refuse(
            f"is {role.folder}, a folder of the image that this machine does not have",
            "take it out, and put the scripts beside the file; or run with --on docker",
        )


def _variables(role: RoleRead, ground: Ground) -> Iterator[tuple[str, str, Node]]:
    for source in role.variables_from:
        yield from _variables_from(source, ground)
    for variable in role.variables:
        if variable.source is None:
            yield variable.name, variable.text or "", variable.node
        elif variable.name not in ground.given and (text := _text_of(variable, ground)) is not None:
            yield variable.name, text.replace("$", "$$"), variable.node


def _variables_from(source: Node, ground: Ground) -> Iterator[tuple[str, str, Node]]:
    prefix = source.string("prefix") or ""
    for key, what, found in (
        ("configMapRef", "config map", ground.manifest.config_maps),
        ("secretRef", "secret", ground.manifest.secrets),
    ):
        reference = source.mapping(key)
        if reference is None:
            continue
        name = reference.string("name") or ""
        optional = reference.get("optional")
        if name in found:
            for variable, text in found[name].items():
                yield prefix + variable, text.replace("$", "$$"), source
        elif optional is None or optional.value is not True:
            reference.refuse(
                f"takes all variables of the {what} {name}, which is in a cluster",
                f"put the {what} into the file, or write the variables under env",
            )


def _text_of(variable: Variable, ground: Ground) -> str | None:
    """The value of a variable that the cluster has. Raises UsageError where it is nowhere here."""
    assert variable.source is not None
    for key, what, found in (
        ("configMapKeyRef", "config map", ground.manifest.config_maps),
        ("secretKeyRef", "secret", ground.manifest.secrets),
    ):
        reference = variable.source.mapping(key)
        if reference is None:
            continue
        name, entry, optional = reference.string("name") or "", reference.string("key") or "", reference.get("optional")
        if (text := found.get(name, {}).get(entry)) is not None:
            return text
        if optional is not None and optional.value is True:
            return None
        variable.node.refuse(
            f"{variable.name} is {entry} of the {what} {name}, which is in a cluster",
            f"give it with `--env {variable.name}=VALUE`, or put the {what} into the file",
        )
    what = next(iter(variable.source.value), "a field of the pod")
    variable.node.refuse(
        f"{variable.name} is known only to a pod ({what})", f"give it with `--env {variable.name}=VALUE`"
    )


def _mounts(role: RoleRead, ground: Ground) -> Iterator[Mount]:
    volumes = {str(name.value): each for each in role.volumes if (name := each.peek("name"))}
    for mount in role.mounts:
        name, path = mount.string("name") or "", (mount.string("mountPath") or "").rstrip("/") or "/"
        volume = volumes.get(name)
        if volume is None:
            mount.refuse(f"names the volume {name}, and the pod has none of that name")
        read_only = (flag := mount.get("readOnly")) is not None and flag.value is True
        below = mount.string("subPath")
        expression = mount.string("subPathExpr")
        mount.plain()
        if expression:
            mount.refuse("has a subPathExpr, which only the kubelet fills in", f"take it out, or give --volume {name}")
        kind = next((key for key in volume.value if key != "name"), "emptyDir")
        folder = ground.volumes.get(name)
        if folder is None and kind == "hostPath":
            source = volume.mapping("hostPath")
            folder = None if source is None else source.string("path")
        if folder is None and kind != "emptyDir":
            _refuse_volume(volume, name, kind, path, ground)
        if folder is not None and below:
            folder = str(PurePosixPath(folder) / below)
        yield Mount(name, path, folder, read_only, mount)
    for each in role.volumes:
        each.plain()


def _refuse_volume(volume: Node, name: str, kind: str, path: str, ground: Ground) -> None:
    own = volume.peek(kind)
    named = ""
    if own is not None and isinstance(own.value, dict):
        key = next((key for key in ("claimName", "name", "secretName", "server", "driver") if own.peek(key)), None)
        named = f" {own.look()[key]}" if key else ""
    volume.refuse(
        f"{kind}{named}, which the task sees at {path}, is not on {'this machine' if ground.engine != NOMAD else 'Nomad'}",
        f"name a folder that holds the same: --volume {name}=FOLDER",
    )


def _moves(mount: Mount, ground: Ground) -> bool:
    """Whether the task sees the volume at another path than in a pod, so that paths in its words have to follow."""
    if mount.path == "/dev/shm" and mount.folder is None:  # noqa: S108 - shared memory, which every place has
        return False
    if mount.folder is None:
        return True
    return ground.engine == LOCAL and mount.folder != mount.path


def _moved(text: str, moved: Mapping[str, str]) -> str:
    """The text with paths below a mount replaced by where that is."""
    for path in sorted(moved, key=len, reverse=True):
        text = re.sub(rf"(?<![\w./-]){re.escape(path)}(?![\w.-])", lambda _, to=moved[path]: to, text)
    return text


def _tell_moved(mount: Mount, *, changed: bool, notes: list[Note]) -> None:
    where = mount.folder or f"the task's own folder {mount.volume}"
    how = "its command and variables say that" if changed else "a script that names the path itself looks elsewhere"
    notes.append(mount.node.note(f"the volume {mount.volume}, at {mount.path} in a pod, is {where} here; {how}"))


def _scripts_beside(
    role: RoleRead, words: list[str], moved: Mapping[str, str], notes: list[Note]
) -> dict[str, str]:
    """Scripts of the image that lie beside the file, by their path in the image; those that are nowhere are told."""
    found = {}
    folder = Path(role.node.file).absolute().parent
    at = role.container.peek("command") or role.container
    for word in words:
        path = PurePosixPath(word)
        if not path.is_absolute() or path.suffix not in _SCRIPTS or _moved(word, moved) != word or Path(word).exists():
            continue
        if (folder / path.name).is_file():
            found[word] = path.name
            notes.append(at.note(f"runs {word}, which this machine does not have: {path.name} beside the file is run"))
        else:
            notes.append(
                at.note(f"runs {word}, which this machine does not have: put {path.name} beside the file, and it is run")
            )
    return found


def _tell_left_out(roles: list[RoleRead], options: dict[str, Any], ground: Ground, notes: list[Note]) -> None:
    """What is the cluster's alone: each of the large things by itself, the rest in one line."""
    plain: list[str] = []
    for role in roles:
        for key, option in role.options.items():
            if key in _NEEDED:
                message, hint = _NEEDED[key]
                option.node.refuse(message.format(engine=ground.engine), hint)
            elif key in _OF_CLUSTER:
                plain.append(_field(option.node))
            elif key == "sidecars":
                notes.append(option.node.note(f"runs beside the training in its pod, and is left out on {ground.engine}"))
            else:
                where = f"is left out on {ground.engine}"
                names = ", ".join(option.value) if isinstance(option.value, Mapping) else ""
                notes.append(option.node.note(f"{names} {where}" if names else where))
        if ground.engine == LOCAL and role.image and role is roles[0]:
            at = role.container.peek("image") or role.container
            notes.append(at.note(f"{role.image} is not used on this machine: its Python and what is installed are"))
    names = {"clean_pod_policy": "cleanPodPolicy", "keep_s": "ttlSecondsAfterFinished", "managed_by": "managedBy"}
    plain += [names.get(key, key) for key in options]
    if "suspend" in options:
        notes.append(roles[0].node.note(f"suspend is left out on {ground.engine}: the run starts at once"))
        plain.remove("suspend")
    if plain:
        listed = ", ".join(dict.fromkeys(plain))
        notes.append(Note("", f"left out on {ground.engine}, being about Kubernetes: {listed}", roles[0].node.file))


def _field(node: Node) -> str:
    return node.path.rpartition(".")[2].partition("[")[0]
