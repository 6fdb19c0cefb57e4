"""What travels inside the job, as one archive: the agent's modules, the publisher's, what a node has to make ready.

And the job's files, where they are small.
"""

from __future__ import annotations

import base64
import contextlib
import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, Literal

from yurt.errors import EngineError

#: Of xz: 0.1 s for Yurt's own modules, and 220 kB; its own choice takes 2 s for 175 kB.
_PRESET: Final = 0
#: What is needed beside the agent's modules, in the package: the publisher, and what makes a node ready.
_PACKAGES: Final = ("storage", "engines/travel/place")
_YURT: Final = Path(__file__).parents[2]
#: What a node makes ready: nothing but the files that travel in the job.
NOTHING: Final[Mapping[str, Any]] = {
    "files": None,
    "requirements": None,
    "on_top": False,
    "cache_folder": None,
    "publisher": None,
}


@dataclass(frozen=True, slots=True)
class Room:
    """How much travels inside what an engine is sent: `largest_bytes` of base64 in `copies` of it together.

    `engine` is its name under ``engines:``, `inside` says in words where it would be, for whom it is too large.
    `packages` are the engine's own that travel too, as folders in Yurt's. `compression` is tarfile's word: not every
    image's Python can read xz.
    """

    engine: str
    inside: str
    largest_bytes: int
    copies: int = 1
    packages: tuple[str, ...] = ()
    compression: Literal["xz", "gz"] = "xz"

    def holds(self, archive_bytes: int) -> bool:
        """Whether files packed to so many bytes fit."""
        half_a_mib = 1 << 19  # the modules, well counted
        return (archive_bytes * 4 // 3 + half_a_mib) * self.copies <= self.largest_bytes


def payload(agent: Path, files: Path | None, room: Room, ready: Mapping[str, Any] = NOTHING) -> str:
    """The archive in base64.

    Holds ``lib/yurt/...``, ``lib/ready.json`` with `ready`, and ``work/...`` unless the `files` travel otherwise. The
    same sources give the same text. Raises EngineError where it is too large.
    """
    buffer = io.BytesIO()
    with _archive(buffer, room.compression) as tar:
        for name, data in _modules(agent, room.packages):
            _add(tar, f"lib/{name}", io.BytesIO(data), len(data), 0o644)
        text = json.dumps(ready, sort_keys=True).encode()
        _add(tar, "lib/ready.json", io.BytesIO(text), len(text), 0o644)
        if files is not None:
            _add_files(tar, files)
    return _in_base64(buffer.getvalue(), room)


def pack_files(files: Path, archive: Path) -> None:
    """The job's files alone, ``work/...``, for a way of travelling without a limit."""
    with tarfile.open(archive, mode="w:xz", preset=_PRESET, format=tarfile.PAX_FORMAT) as tar:
        _add_files(tar, files)


def _in_base64(archive: bytes, room: Room) -> str:
    text = base64.b64encode(archive).decode()
    if len(text) * room.copies > room.largest_bytes:
        roles = f" for {room.copies} roles" if room.copies > 1 else ""
        raise EngineError(
            f"the job's files are too large to travel inside {room.inside}: "
            f"{len(text) * room.copies / 2**20:.1f} MiB packed{roles}, over {room.largest_bytes >> 20} MiB",
            hint=f"let them go through a bucket (`output`, or engines: {room.engine}: files_through: s3://...) or leave"
            " data out by `files`, and read it from a bucket or a folder that all nodes see",
        )
    return text


@contextlib.contextmanager
def _archive(buffer: io.BytesIO, compression: str) -> Iterator[tarfile.TarFile]:
    """A new one, the same bytes for the same content: gzip's own header has the time in it unless it is told one."""
    if compression == "xz":
        with tarfile.open(fileobj=buffer, mode="w:xz", preset=_PRESET, format=tarfile.PAX_FORMAT) as tar:
            yield tar
        return
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        yield tar


def _modules(agent: Path, packages: tuple[str, ...]) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(agent) as archive:
        for name in archive.namelist():
            if name.startswith("yurt/") and name.endswith(".py"):  # compiled by the node's own Python
                yield name, archive.read(name)
    for package in (*_PACKAGES, *packages):
        for path in sorted((_YURT / package).glob("*.py")):
            yield f"yurt/{package}/{path.name}", path.read_bytes()


def _add_files(tar: tarfile.TarFile, files: Path) -> None:
    _folder(tar, "work")
    for path in sorted(files.rglob("*")) if files.is_dir() else ():
        name = f"work/{path.relative_to(files)}"
        if path.is_dir():
            _folder(tar, name)
        else:
            about = path.stat()
            with path.open("rb") as file:
                _add(tar, name, file, about.st_size, about.st_mode & 0o777)


def _add(tar: tarfile.TarFile, name: str, file: IO[bytes], size_bytes: int, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = size_bytes, mode
    tar.addfile(info, file)


def _folder(tar: tarfile.TarFile, name: str) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    tar.addfile(info)
