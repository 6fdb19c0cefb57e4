"""What the containers of a TFJob see of volumes, where the run does not go into a cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from yurt.convert.converted import Note
from yurt.convert.tfjob.ground import LOCAL, NOMAD, Ground
from yurt.convert.tfjob.parts import RoleRead
from yurt.convert.tfjob.tree import Node

_SCRIPTS: Final = (".py", ".sh")
#: What is known of kinds of volumes that are mapped: their places. What a size or a medium asks for is not kept.
_KNOWN: Final = {"hostPath": ("path", "type"), "emptyDir": ("sizeLimit", "medium")}


@dataclass(frozen=True, slots=True)
class Mount:
    """Where a container sees a volume: a `folder` of this machine, or, without one, an empty folder of the task."""

    volume: str
    path: str
    folder: str | None
    read_only: bool
    node: Node


def mounts_of(role: RoleRead, ground: Ground) -> Iterator[Mount]:
    """Where a role's container sees its volumes. Raises UsageError for a volume that is not here."""
    volumes = {str(own.value): each for each in role.volumes if (own := each.peek("name"))}
    for mount in role.mounts:
        name, path = mount.string("name") or "", (mount.string("mountPath") or "").rstrip("/") or "/"
        volume = volumes.get(name)
        if volume is None:
            mount.refuse(f"names the volume {name}, and the pod has none of that name")
        read_only = (flag := mount.get("readOnly")) is not None and flag.value is True
        below = mount.string("subPath")
        expression = mount.string("subPathExpr")
        if expression:
            mount.refuse("has a subPathExpr, which only the kubelet fills in", f"take it out, or give --volume {name}")
        kind = _kind(volume)
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
        each.get("name")
        kind = _kind(each)
        if (own := each.get(kind)) is None:
            continue
        for key in _KNOWN.get(kind, own.value if isinstance(own.value, dict) else ()):
            if part := own.get(key):
                part.plain()


def _kind(volume: Node) -> str:
    return next((key for key in volume.value if key != "name"), "emptyDir")


def _refuse_volume(volume: Node, name: str, kind: str, path: str, ground: Ground) -> None:
    own = volume.peek(kind)
    named = ""
    if own is not None and isinstance(own.value, dict):
        key = next((key for key in ("claimName", "name", "secretName", "server", "driver") if own.peek(key)), None)
        named = f" {own.look()[key]}" if key else ""
    here = "Nomad" if ground.engine == NOMAD else "this machine"
    volume.refuse(
        f"{kind}{named}, which the task sees at {path}, is not on {here}",
        f"name a folder that holds the same: --volume {name}=FOLDER",
    )


def moves(mount: Mount, ground: Ground) -> bool:
    """Whether the task sees the volume at another path than in a pod, so that paths in its words have to follow."""
    if mount.path == "/dev/shm" and mount.folder is None:  # noqa: S108 - shared memory, which every place has
        return False
    if mount.folder is None:
        return True
    return ground.engine == LOCAL and mount.folder != mount.path


def with_paths(text: str, moved: Mapping[str, str]) -> str:
    """The text with paths below a mount replaced by where that is."""
    if not moved:
        return text
    paths = "|".join(re.escape(path) for path in sorted(moved, key=len, reverse=True))
    return re.sub(rf"(?<![\w./-])(?:{paths})(?![\w.-])", lambda found: moved[found[0]], text)


def tell_moved(mount: Mount, *, changed: bool, notes: list[Note]) -> None:
    """Say where a volume is, and whether anything of the task names it."""
    where = mount.folder or f"the task's own folder {mount.volume}"
    how = "its command and variables say that" if changed else "a script that names the path itself looks elsewhere"
    notes.append(mount.node.note(f"the volume {mount.volume}, at {mount.path} in a pod, is {where} here; {how}"))


def scripts_beside(role: RoleRead, words: list[str], moved: Mapping[str, str], notes: list[Note]) -> dict[str, str]:
    """Scripts of the image that lie beside the file, by their path in the image; those that are nowhere are told."""
    found = {}
    folder = Path(role.node.file).absolute().parent
    at = role.container.peek("command") or role.container
    missing = "which this machine does not have"
    for word in words:
        path = PurePosixPath(word)
        if (
            not path.is_absolute()
            or path.suffix not in _SCRIPTS
            or with_paths(word, moved) != word
            or Path(word).exists()
        ):
            continue
        if (folder / path.name).is_file():
            found[word] = path.name
            notes.append(at.note(f"runs {word}, {missing}: {path.name} beside the file is run"))
        else:
            notes.append(
                at.note(
                    f"runs {word}, which this machine does not have: put {path.name} beside the file, and it is run"
                )
            )
    return found
