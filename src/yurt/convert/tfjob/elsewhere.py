"""Where a TFJob runs decides what of its pods can be kept: in the cluster all of it, elsewhere what has a place there.

What cannot be carried is told; what would change what the training is, is refused with the way round it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from yurt.convert.converted import Note
from yurt.convert.standard_server import STANDARD_SERVER
from yurt.convert.tfjob.commands import needs_folder, tell_about, words_of, written
from yurt.convert.tfjob.containers import option_of_volumes
from yurt.convert.tfjob.expansion import expanded, kept, names_in, partly, shell_word
from yurt.convert.tfjob.ground import DOCKER, KUBERNETES, LOCAL, NOMAD, Ground
from yurt.convert.tfjob.mounts import mounts_of, moves, scripts_beside, tell_moved, with_paths
from yurt.convert.tfjob.parts import Option, RoleRead
from yurt.convert.tfjob.places import INDEX, without_places
from yurt.convert.tfjob.tree import Node
from yurt.convert.tfjob.variables import known_variables
from yurt.errors import UsageError
from yurt.job import RoleName
from yurt.job.names import ENV_PATTERN

TF_CONFIG: Final = "TF_CONFIG"
#: The working folder of the image, as the agent in a pod finds it and tells its task.
IMAGE_FOLDER: Final = "YURT_IMAGE_FOLDER"
#: A variable of the shell that starts a task: the folder where the task works.
_HERE: Final = "yurt_here"
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
    for volume in ground.volumes:
        if volume not in known:
            raise _unused_volume(volume, f"the volumes are {', '.join(sorted(known)) or 'none'}")
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
            late[variable.name] = {"name": variable.name, "valueFrom": variable.source.plain()}
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
    if folder is None and ground.engine == KUBERNETES and needs_folder(words):
        folder = f'"${{{IMAGE_FOLDER}:-.}}"'
    made = words_of(words, values, {TF_CONFIG, *asked, *late}, folder=folder, first=_exports(own))
    _finish(role, words, made, notes)
    role.env = {name: text for name, text in values.items() if name not in late and name not in own}


def _settle(role: RoleRead, ground: Ground, notes: list[Note]) -> Iterator[str]:
    """Elsewhere: everything is known before the start, or refused. Yields what a container engine has to mount."""
    words, own = without_places(role, written(role, ground.images, notes))
    if (
        ground.engine == DOCKER
        and role.folder is None
        and role.image
        and needs_folder(words)
        and (facts := ground.images(role.image))
    ):
        role.folder = facts.folder if facts.folder not in ("", "/") else None
    values: dict[str, str] = dict(own)
    for name, text, node in known_variables(role, ground):
        if not re.fullmatch(ENV_PATTERN, name):
            notes.append(node.note(f"{name} is left out: it is no name for a variable outside of Kubernetes"))
            continue
        values.pop(name, None)
        values[name] = expanded(text, values)
    mounts = list(mounts_of(role, ground))
    moved = {
        each.path: kept(each.folder or "") or f"$({_HERE})/{each.volume}" for each in mounts if moves(each, ground)
    }
    if ground.engine == LOCAL:
        moved |= scripts_beside(role, words, moved, notes)
        _need_folder(role, moved)
    folder = shlex.quote(expanded(with_paths(role.folder, moved), {})) if role.folder else None
    text = " ".join([*words, *values.values()])
    values = {name: with_paths(kept(value), moved) for name, value in values.items()}
    here = {name: value for name, value in values.items() if _HERE in names_in(value)}
    values = {name: expanded(value, {}) for name, value in values.items() if name not in here}
    first = _exports(own)
    if volumes := [each.volume for each in mounts if each.path in moved and each.folder is None]:
        first += f'{_HERE}="$PWD"; mkdir -p {shlex.join(volumes)}; '
    first += "".join(f"export {name}={shell_word(value, {}, {_HERE})}; " for name, value in here.items())
    made = words_of(
        [with_paths(word, moved) for word in words],
        values,
        {TF_CONFIG, _HERE, *here, *ground.given},
        folder=folder,
        first=first,
    )
    _finish(role, words, made, notes)
    role.env = {name: value for name, value in values.items() if name not in own}
    for mount in mounts:
        if mount.path in moved:
            tell_moved(mount, changed=with_paths(text, {mount.path: ""}) != text, notes=notes)
        elif mount.folder is not None and ground.engine != LOCAL:
            yield f"{mount.folder}:{mount.path}" + (":ro" if mount.read_only else "")


def _finish(role: RoleRead, words: Sequence[str], made: tuple[str, ...], notes: list[Note]) -> None:
    """What a role runs is `made` of `words`; TensorFlow's own server is known again."""
    if made == STANDARD_SERVER and role.name in (RoleName.PS, RoleName.WORKER):
        role.standard_server = True
        return
    role.words = made
    tell_about(role, words, notes)


def _exports(own: Mapping[str, str]) -> str:
    """What a shell says before the words: variables that hold a task's place, filled in for each task."""
    return "".join(f"export {name}={text}; " for name, text in own.items() if name != INDEX[0])


def _need_folder(role: RoleRead, moved: Mapping[str, str]) -> None:
    if role.folder and not Path(with_paths(role.folder, moved)).is_dir():
        at = role.container.peek("workingDir") or role.container
        at.refuse(
            f"is {role.folder}, a folder of the image that this machine does not have",
            "take it out, and put the scripts beside the file; or run with --on docker",
        )


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
                notes.append(
                    option.node.note(f"runs beside the training in its pod, and is left out on {ground.engine}")
                )
            else:
                where = f"is left out on {ground.engine}"
                names = ", ".join(option.value) if isinstance(option.value, Mapping) else ""
                notes.append(option.node.note(f"{names} {where}" if names else where))
        if ground.engine == LOCAL and role.image and role is roles[0]:
            at = role.container.peek("image") or role.container
            notes.append(at.note(f"{role.image} is not used on this machine: its Python and what is installed are"))
    words = {"clean_pod_policy": "cleanPodPolicy", "keep_s": "ttlSecondsAfterFinished", "managed_by": "managedBy"}
    words["scheduling"] = "labels" if options.get("scheduling", {}).get("by") == "kueue" else "schedulingPolicy"
    plain += [words.get(key, key.removeprefix("run_")) for key in options if key != "suspend"]
    if "suspend" in options:
        notes.append(roles[0].node.note(f"suspend is left out on {ground.engine}: the run starts at once"))
    if plain:
        listed = ", ".join(dict.fromkeys(plain))
        notes.append(Note("", f"left out on {ground.engine}, being about Kubernetes: {listed}", roles[0].node.file))


def _field(node: Node) -> str:
    return node.path.rpartition(".")[2].partition("[")[0]
