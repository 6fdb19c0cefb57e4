"""What travels inside the job: the agent's modules, the publisher's, and the job's files, as one archive."""

from __future__ import annotations

import base64
import io
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from yurt.errors import EngineError

#: Bytes of base64 that all groups of a job may have together. Nomad took 12 MiB (1.0.18), but every server keeps the
#: job in memory and every read of an allocation carries it.
LARGEST_JOB_BYTES: Final = 4 << 20
#: Of xz: 0.1 s for Yurt's own modules, and 220 kB; its own choice takes 2 s for 175 kB.
_PRESET: Final = 0
#: What the publisher needs beside the agent's modules.
_PUBLISHER: Final = Path(__file__).parents[2] / "storage"


def payload(agent: Path, files: Path, copies: int) -> str:
    """The archive in base64. `copies` is how many groups will hold it.

    Holds ``lib/yurt/...`` and ``work/...``. The same sources give the same text. Raises EngineError where it is too
    large.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", preset=_PRESET, format=tarfile.PAX_FORMAT) as tar:
        for name, data in _modules(agent):
            _add(tar, f"lib/{name}", data, 0o644)
        _folder(tar, "work")
        for path in sorted(files.rglob("*")) if files.is_dir() else ():
            name = f"work/{path.relative_to(files)}"
            if path.is_dir():
                _folder(tar, name)
            else:
                _add(tar, name, path.read_bytes(), path.stat().st_mode & 0o777)
    text = base64.b64encode(buffer.getvalue()).decode()
    if len(text) * copies > LARGEST_JOB_BYTES:
        raise EngineError(
            f"the job's files are too large to travel inside a Nomad job: {len(text) * copies / 2**20:.1f} MiB packed"
            f" for {copies} roles, over {LARGEST_JOB_BYTES >> 20} MiB",
            hint="leave data out by `files`, and read it from a bucket or a folder that all nodes see",
        )
    return text


def _modules(agent: Path) -> Iterator[tuple[str, bytes]]:
    with zipfile.ZipFile(agent) as archive:
        for name in archive.namelist():
            if name.startswith("yurt/") and name.endswith(".py"):  # compiled by the node's own Python
                yield name, archive.read(name)
    for path in sorted(_PUBLISHER.glob("*.py")):
        yield f"yurt/{_PUBLISHER.name}/{path.name}", path.read_bytes()


def _add(tar: tarfile.TarFile, name: str, data: bytes, mode: int) -> None:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(data), mode
    tar.addfile(info, io.BytesIO(data))


def _folder(tar: tarfile.TarFile, name: str) -> None:
    info = tarfile.TarInfo(name)
    info.type, info.mode = tarfile.DIRTYPE, 0o755
    tar.addfile(info)
