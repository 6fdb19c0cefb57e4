"""The object store's client for tasks whose Python lacks it: lent through the output bucket, as this machine has it.

Of about 5 MB it is too large for what an engine is sent. All runs to a bucket share one copy, whose name is its hash.
"""

from __future__ import annotations

import gzip
import hashlib
import importlib.util
import io
import platform
import sys
import tarfile
import tempfile
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from yurt.errors import UsageError
from yurt.storage.errors import StorageFailed
from yurt.storage.parcel import lend
from yurt.storage.urls import parse_output

#: The package, whose wheels are of the stable ABI: one serves every Python from 3.10 on (obstore 0.12).
PACKAGE: Final = "obstore"
#: The file of certifi, and its name beside the package.
AUTHORITIES: Final = "cacert.pem"
#: Type hints, which nobody reads there.
_LEFT_OUT: Final = (".pyi", ".pyc", ".typed")


def publisher(output: str | None) -> Mapping[str, Any] | None:
    """What `yurt.engines.travel.place.publisher` needs; None where nothing is published to a bucket.

    ``{"url", "sha256", "name", "platform"}``, or ``{"why_not"}`` in words where it cannot be lent.
    """
    if output is None or parse_output(output).scheme == "file":
        return None
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        return {"why_not": f"{PACKAGE} is not installed on the launcher's machine either"}
    with tempfile.TemporaryDirectory(prefix="yurt-package-") as name:
        archive = Path(name) / "package.tar.gz"
        archive.write_bytes(_packed(Path(next(iter(spec.submodule_search_locations)))))
        digest = hashlib.sha256(archive.read_bytes()).hexdigest()
        try:
            known, url = lend(output, f"packages/{PACKAGE}-{_version()}-{digest[:16]}.tar.gz", archive)
        except (StorageFailed, UsageError, OSError) as error:
            return {"why_not": f"the launcher could not lend its own: {error}"}
    return {"url": url, "sha256": digest, "name": known, "platform": list(here())}


def here() -> tuple[str, str, str]:
    """What a compiled package has to fit: system, processor, C library."""
    return sys.platform, platform.machine(), platform.libc_ver()[0]


def _version() -> str:
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return "0"


def _packed(folder: Path) -> bytes:
    """The package as ``obstore/...``; the same files give the same bytes."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(filename="", fileobj=buffer, mode="wb", compresslevel=3, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.PAX_FORMAT) as tar,
    ):
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.suffix not in _LEFT_OUT:
                info = tarfile.TarInfo(f"{PACKAGE}/{path.relative_to(folder)}")
                info.size, info.mode = path.stat().st_size, 0o644
                with path.open("rb") as file:
                    tar.addfile(info, file)
        if (authorities := _authorities()) is not None:
            info = tarfile.TarInfo(AUTHORITIES)
            info.size, info.mode = len(authorities), 0o644
            tar.addfile(info, io.BytesIO(authorities))
    return buffer.getvalue()


def _authorities() -> bytes | None:
    """Certificates of the usual authorities, for images that have none; None where nobody has brought them here."""
    spec = importlib.util.find_spec("certifi")
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(next(iter(spec.submodule_search_locations))) / AUTHORITIES
    return path.read_bytes() if path.is_file() else None
