"""Read what was published: which versions there are, whether one is whole, and a copy of it."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path

from yurt.errors import UsageError
from yurt.storage.errors import StorageFailed, from_os_error
from yurt.storage.manifest import FileEntry, Manifest
from yurt.storage.place import Limits, Place, open_place
from yurt.storage.pointer import sync_folder
from yurt.storage.urls import LATEST, MANIFEST, Location, check_version, parse_output


def resolve(output: str | Path, version: str = LATEST, *, retry_timeout_s: float = 120) -> str:
    """The version that ``latest`` points to; any other version is checked for its manifest and returned.

    Raises:
        StorageFailed: not-found when it is not published, and the faults of the place.
        UsageError: the output or version is wrong.
    """
    place, version = _find(parse_output(output), version, retry_timeout_s)
    place.manifest(version)
    return version


def list_versions(output: str | Path, *, retry_timeout_s: float = 120) -> list[str]:
    """The versions published at `output`, oldest first; empty when there are none.

    Raises:
        StorageFailed: the faults of the place.
        UsageError: the output is wrong.
    """
    return open_place(parse_output(output), Limits(retry_timeout_s)).versions()


def verify(output: str | Path, version: str = LATEST, *, retry_timeout_s: float = 120) -> Manifest:
    """Read every file of a published version and compare it with its manifest, which is returned.

    `output` may also be the URL or path of the version itself.

    Raises:
        StorageFailed: corrupt when a file is missing or is not what was published; not-found when the version
            is not there; and the faults of the place.
        UsageError: the output or version is wrong.
    """
    place, version = _find(parse_output(output), version, retry_timeout_s)
    manifest = place.manifest(version)
    for entry in manifest.files:
        _read(place, manifest.version, entry, None)
    return manifest


def fetch(output: str | Path, version: str, target: Path, *, retry_timeout_s: float = 120) -> Manifest:
    """Copy a published version (or ``latest``) into the new folder `target`, verified, with its manifest.

    `target` appears when all of it is there: it is written as ``.<name>.partial`` beside it first.

    Raises:
        StorageFailed: as for verify, and when `target` cannot be written.
        UsageError: `target` exists and is no empty folder, or the output or version is wrong.
    """
    place, version = _find(parse_output(output), version, retry_timeout_s)
    manifest = place.manifest(version)
    target = target.absolute()
    if os.path.lexists(target) and not (target.is_dir() and not any(target.iterdir())):
        raise UsageError(f"{target} exists already", hint="name a folder that does not exist or is empty")
    partial = target.with_name(f".{target.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for entry in manifest.files:
            (partial / entry.path).parent.mkdir(parents=True, exist_ok=True)
            _read(place, manifest.version, entry, partial / entry.path)
        (partial / MANIFEST).write_bytes(manifest.to_json())
        partial.replace(target)
        sync_folder(target.parent)
    except OSError as error:
        raise from_os_error(error, "writing", target) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return manifest


def _find(location: Location, version: str, retry_timeout_s: float) -> tuple[Place, str]:
    """The place and the version. A URL of a version itself (or of ``latest``) is understood, too."""
    place = open_place(location, Limits(retry_timeout_s))
    if version != LATEST:
        return place, check_version(version)
    try:
        return place, place.latest()
    except StorageFailed as error:
        head, _, last = location.path.rpartition("/")
        if error.reason != "not-found" or not last:
            raise
        above = open_place(replace(location, path=head or location.path[:1]), Limits(retry_timeout_s))
        try:
            found = above.latest() if last == LATEST else check_version(last)
            above.manifest(found)
        except (StorageFailed, UsageError):
            raise error from None
        return above, found


def _read(place: Place, version: str, entry: FileEntry, copy: Path | None) -> None:
    """Read one file to its end, compare its hash, and write it to `copy` on the way."""
    whole = hashlib.sha256()
    with (Path(os.devnull) if copy is None else copy).open("wb") as writer:
        for block in place.read(version, entry):
            whole.update(block)
            writer.write(block)
        if copy is not None:
            writer.flush()
            os.fsync(writer.fileno())
    if whole.hexdigest() != entry.sha256:
        raise StorageFailed(
            f"{place.location.place(version, entry.path)} is not what was published: its SHA-256 is another",
            reason="corrupt",
            hint="publish the version again",
        )
