"""``latest`` in a folder: a symbolic link beside the versions, replaced in one step."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from yurt.storage.urls import LATEST

_NO_LINKS = frozenset({errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})


def point_to(root: Path, version: str) -> None:
    """Let ``latest`` point to `version`, whatever it pointed to before.

    The link is relative, so the folder can be moved or mounted elsewhere. On a filesystem without symbolic
    links ``latest`` is a text file with the version's name, as in an object store.

    Raises:
        OSError: it cannot be written, or ``latest`` is a folder.
    """
    fresh = root / f".{version}.latest"
    fresh.unlink(missing_ok=True)
    try:
        try:
            fresh.symlink_to(version, target_is_directory=True)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            with fresh.open("w", encoding="ascii") as writer:
                writer.write(version + "\n")
                writer.flush()
                os.fsync(writer.fileno())
        fresh.replace(root / LATEST)
        sync_folder(root)
    finally:
        fresh.unlink(missing_ok=True)


def read_pointer(root: Path) -> str | None:
    """The version ``latest`` points to; None when there is no ``latest``.

    Raises:
        OSError: it cannot be read.
    """
    latest = root / LATEST
    try:
        if latest.is_symlink():
            return latest.readlink().name
        return latest.read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return None


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable (fsync of the folder, as Linux asks for).

    Raises:
        OSError: it cannot be done; filesystems that do not know how are passed over.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):
            raise
    finally:
        os.close(fd)
