"""How the job's files come to their place: inside what the engine is sent, through a bucket, or from a git commit."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yurt.engines.travel.commit import commit_of
from yurt.engines.travel.options import TravelOptions
from yurt.engines.travel.payload import Room, pack_files, payload
from yurt.engines.travel.publisher import publisher
from yurt.errors import EngineError, UsageError
from yurt.storage.errors import StorageFailed
from yurt.storage.parcel import remove_parcel, send_parcel
from yurt.storage.urls import parse_output


@dataclass(frozen=True, slots=True)
class Parcel:
    """The packed files of one run in a bucket, until it is over."""

    output: str
    name: str


@dataclass(frozen=True, slots=True)
class Travelling:
    """What `submit` sends: the archive as base64, and what lies in a bucket beside it."""

    text: str
    parcel: Parcel | None = None


def travelling(
    run_id: str, agent: Path, files: Path, room: Room, options: TravelOptions, output: str | None
) -> Travelling:
    """Pack what travels; large files are sent to the bucket now.

    Raises:
        EngineError: they are too large and there is no bucket; the bucket or git does not give what is needed.
        UsageError: the requirements file is not among them, or the commit has not what is here.
    """
    if options.requirements is not None and not (files / options.requirements).is_file():
        raise UsageError(
            f"the requirements file {options.requirements!r} is not among the job's files",
            hint="give its path relative to the job file, and see that `files` holds it",
        )
    ready: dict[str, Any] = {
        "files": None,
        "requirements": options.requirements,
        "on_top": options.requirements_on_top,
        "cache_folder": options.cache_folder,
        "publisher": publisher(output),
    }
    if options.git is not None:
        git = options.git
        commit = commit_of(git.url, git.ref, git.folder, files)
        ready["files"] = {"from": "git", "url": git.url, "ref": git.ref, "commit": commit, "folder": git.folder}
        return Travelling(payload(agent, None, room, ready))
    bucket = bucket_of(options.files_through, output)
    if bucket is None:
        return Travelling(payload(agent, files, room, ready))
    with tempfile.TemporaryDirectory(prefix="yurt-files-") as name:
        archive = Path(name) / "files.tar.xz"
        pack_files(files, archive)
        if room.holds(archive.stat().st_size):
            return Travelling(payload(agent, files, room, ready))
        parcel, ready["files"] = _send(run_id, bucket, archive)
    try:
        return Travelling(payload(agent, None, room, ready), parcel)
    except BaseException:
        remove(parcel)
        raise


def bucket_of(through: str | None, output: str | None) -> str | None:
    """The bucket for large files: the one that the options name, else the output where that is one."""
    if through is not None:
        return through
    return output if output is not None and parse_output(output).scheme != "file" else None


def _send(run_id: str, bucket: str, archive: Path) -> tuple[Parcel, Mapping[str, Any]]:
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    parcel = Parcel(bucket, f"{run_id}/{digest}.tar.xz")  # the run's own: its end takes nothing from another
    try:
        name, url = send_parcel(bucket, parcel.name, archive)
    except (StorageFailed, OSError) as error:
        remove(parcel)
        raise EngineError(
            f"the job's files cannot go through {bucket}: {error}", hint=getattr(error, "hint", None)
        ) from error
    return parcel, {"from": "bucket", "url": url, "sha256": digest, "name": name}


def remove(parcel: Parcel) -> None:
    """The run is over. What cannot be removed stays: no run ends otherwise for it."""
    try:
        remove_parcel(parcel.output, parcel.name)
    except (StorageFailed, UsageError, OSError):
        return
