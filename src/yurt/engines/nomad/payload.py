"""What travels inside the job, as one archive: the agent's modules, the publisher's, what a node has to make ready.

And the job's files, where they are small.
"""

from __future__ import annotations

import base64
import io
import json
import tarfile
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Final

from yurt.errors import EngineError

#: Bytes of base64 that all groups of a job may have together. Nomad took 12 MiB (1.0.18), but every server keeps the
#: job in memory and every read of an allocation carries it.
LARGEST_JOB_BYTES: Final = 4 << 20
#: Of xz: 0.1 s for Yurt's own modules, and 220 kB; its own choice takes 2 s for 175 kB.
_PRESET: Final = 0
#: What is needed beside the agent's modules: the publisher, and what makes a node ready.
_PACKAGES: Final = {
    "yurt/storage": Path(__file__).parents[2] / "storage",
    "yurt/engines/nomad/node": Path(__file__).with_name("node"),
}
#: What a node makes ready: nothing but the files that travel in the job.
NOTHING: Final[Mapping[str, Any]] = {"files": None, "requirements": None, "on_top": False, "cache_folder": None}


def payload(agent: Path, files: Path | None, copies: int, ready: Mapping[str, Any] = NOTHING) -> str:
    """The archive in base64. `copies` is how many groups will hold it.

    Holds ``lib/yurt/...``, ``lib/ready.json`` with `ready`, and ``work/...`` unless the `files` travel otherwise. The
    same sources give the same text. Raises EngineError where it is too large.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", preset=_PRESET, format=tarfile.PAX_FORMAT) as tar:
        for name, data in _modules(agent):
            _add(tar, f"lib/{name}", io.BytesIO(data), len(data), 0o644)
        text = json.dumps(ready, sort_keys=True).encode()
        _add(tar, "lib/ready.json", io.BytesIO(text), len(text), 0o644)
        if files is not None:
            _add_files(tar, files)
    return _in_base64(buffer.getvalue(), copies)


def pack_files(files: Path, archive: Path) -> None:
    """The job's files alone, ``work/...``, for a way of travelling without a limit."""
    with tarfile.open(archive, mode="w:xz", preset=_PRESET, format=tarfile.PAX_FORMAT) as tar:
        _add_files(tar, files)


def fits(archive_bytes: int, copies: int) -> bool:
    """Whether files packed to so many bytes can travel inside the job."""
    return (archive_bytes * 4 // 3 + (1 << 19)) * copies <= LARGEST_JOB_BYTES  # half a MiB: the modules, well counted


def _in_base64(archive: bytes, copies: int) -> str:
    text = base64.b64encode(archive).decode()
    if len(text) * copies > LARGEST_JOB_BYTES:
        raise EngineError(
            f"the job's files are too large to travel inside a Nomad job: {len(text) * copies / 2**20:.1f} MiB packed"
            f" for {copies} roles, over {LARGEST_JOB_BYTES >> 20} MiB",
            hint="let them go through a bucket (`output`, or engines: nomad: files_through: s3://...) or leave data out"
            " by `files`, and read it from a bucket or a folder that all nodes see",
        )
    return text


def _modules(agent: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(agent) as archive:
        for name in archive.namelist():
            if name.startswith("yurt/") and name.endswith(".py"):  # compiled by the node's own Python
                yield name, archive.read(name)
    for package, folder in _PACKAGES.items():
        for path in sorted(folder.glob("*.py")):
            yield f"{package}/{path.name}", path.read_bytes()


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
