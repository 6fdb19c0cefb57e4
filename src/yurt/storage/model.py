"""The model folder a script has left behind: which files it has, and their hashes."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from yurt.storage.errors import StorageFailed, from_os_error
from yurt.storage.manifest import FileEntry
from yurt.storage.urls import CLAIM, MANIFEST, unfit

BLOCK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class ModelFile:
    """One file to publish: `path` is relative with ``/`` between parts, `source` is what to read."""

    path: str
    source: Path
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Hashed:
    """A file with its hashes. `etag` is what S3 answers for it when sent in parts of `part_bytes`."""

    entry: FileEntry
    etag: str


def scan(folder: Path) -> list[ModelFile]:
    """Every regular file below `folder`, sorted by path. Folders without files are left out.

    Symbolic links that stay inside `folder` are followed.

    Raises:
        StorageFailed: no-model when there is no file; other for a link that leaves the folder, leads nowhere
            or in a circle, for sockets, pipes and devices, for names no object store can hold, and for a
            file called ``manifest.json`` or ``.publishing`` at the top; denied when something cannot be read.
    """
    try:
        root = folder.resolve(strict=True)
        files = sorted(_walk(root, root, "", (root,)), key=lambda f: f.path) if root.is_dir() else []
    except FileNotFoundError:
        files = []
    except OSError as error:
        raise from_os_error(error, "reading the model in", folder) from error
    if not files:
        raise StorageFailed(
            f"the script saved nothing to {folder}",
            reason="no-model",
            hint="save the model to the folder that YURT_MODEL_DIR names before the script ends",
        )
    taken = next((f.path for f in files if f.path in (MANIFEST, CLAIM)), None)
    if taken is not None:
        raise StorageFailed(
            f"the model in {folder} has a file {taken} at its top, a name that Yurt writes itself",
            reason="other",
            hint="save that file under another name or in a folder",
        )
    return files


def _walk(folder: Path, root: Path, prefix: str, above: tuple[Path, ...]) -> Iterator[ModelFile]:
    with os.scandir(folder) as entries:
        for item in entries:
            path = prefix + item.name
            if unfit(item.name):
                raise _refuse(f"the model has a name with unprintable characters: {path!r}", "rename that file")
            real = Path(item.path)
            if item.is_symlink():
                real = _follow(real, root, path)
            mode = real.stat().st_mode
            if stat.S_ISDIR(mode):
                if real in above:
                    raise _refuse(f"the link {path} in the model leads in a circle", "remove the link")
                yield from _walk(real, root, path + "/", (*above, real))
            elif stat.S_ISREG(mode):
                yield ModelFile(path, real, real.stat().st_size)
            else:
                raise _refuse(
                    f"{path} in the model is a pipe, socket or device, not a file", "remove it from the model"
                )


def _follow(link: Path, root: Path, path: str) -> Path:
    try:
        real = link.resolve(strict=True)
    except (FileNotFoundError, RuntimeError) as error:  # RuntimeError: a circle, CPython 3.11
        raise _refuse(f"the link {path} in the model leads nowhere", "remove the link") from error
    if not real.is_relative_to(root):
        raise _refuse(f"the link {path} in the model leaves the model's folder", "copy the file into the model instead")
    return real


def _refuse(message: str, hint: str) -> StorageFailed:
    return StorageFailed(message, reason="other", hint=hint)


def blocks(file: ModelFile) -> Iterator[bytes]:
    """The file's bytes, about a mebibyte at a time.

    Raises:
        StorageFailed: it cannot be read.
    """
    try:
        with file.source.open("rb") as reader:
            while block := reader.read(BLOCK_BYTES):
                yield block
    except OSError as error:
        raise from_os_error(error, "reading", file.source) from error


def hash_file(file: ModelFile, part_bytes: int) -> Hashed:
    """The file's SHA-256, and S3's ETag for it.

    Amazon S3's ETag is the MD5 of the bytes for one PUT, and the MD5 of the parts' MD5s with ``-<parts>`` for
    an upload in parts; not so with KMS or customer keys (S3 User Guide, "Checking object integrity").

    Raises:
        StorageFailed: it cannot be read, or its size changed since it was found.
    """
    whole = hashlib.sha256()
    md5s: list[bytes] = []
    part = hashlib.md5(usedforsecurity=False)
    room, size = part_bytes, 0
    for block in blocks(file):
        whole.update(block)
        size += len(block)
        view = memoryview(block)
        while view:
            part.update(view[:room])
            taken = min(room, len(view))
            view, room = view[taken:], room - taken
            if room == 0:
                md5s.append(part.digest())
                part, room = hashlib.md5(usedforsecurity=False), part_bytes
    if size != file.size_bytes:
        raise changed(file)
    if size <= part_bytes:
        etag = md5s[0].hex() if md5s else part.hexdigest()
    else:
        md5s += [part.digest()] if room != part_bytes else []
        etag = f"{hashlib.md5(b''.join(md5s), usedforsecurity=False).hexdigest()}-{len(md5s)}"
    return Hashed(FileEntry(file.path, size, whole.hexdigest()), etag)


def changed(file: ModelFile) -> StorageFailed:
    """The model was still being written."""
    return StorageFailed(
        f"{file.source} changed while it was published",
        reason="other",
        hint="let the script finish saving before it ends, and start no process that goes on writing",
    )
