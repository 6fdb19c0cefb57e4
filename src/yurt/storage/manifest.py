"""The manifest: which files a published model has, how large they are, and their SHA-256."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from yurt.storage.errors import StorageFailed
from yurt.storage.redact import redact_value
from yurt.storage.urls import unfit

FORMAT = 1


@dataclass(frozen=True, slots=True)
class FileEntry:
    """One file: its path below the version with ``/`` between parts, and what it must be."""

    path: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a published version holds. `files` are sorted by path; `created` is UTC, ISO 8601."""

    version: str
    files: tuple[FileEntry, ...]
    created: str
    meta: Mapping[str, Any] = field(default_factory=dict)

    @property
    def total_bytes(self) -> int:
        """The sum of all files' sizes."""
        return sum(f.size_bytes for f in self.files)

    @property
    def content(self) -> str:
        """A SHA-256 over paths, sizes and hashes: equal for equal models, whenever and by whom published."""
        lines = [[f.path, f.size_bytes, f.sha256] for f in self.files]
        return hashlib.sha256(json.dumps(lines).encode()).hexdigest()

    def to_json(self) -> bytes:
        """The text of ``manifest.json``."""
        value = {
            "format": FORMAT,
            "version": self.version,
            "created": self.created,
            "total_bytes": self.total_bytes,
            "files": [{"path": f.path, "size_bytes": f.size_bytes, "sha256": f.sha256} for f in self.files],
            "meta": dict(self.meta),
        }
        return (json.dumps(value, indent=1, ensure_ascii=False) + "\n").encode()


def new_manifest(version: str, files: list[FileEntry], meta: Mapping[str, Any]) -> Manifest:
    """A manifest made now; secrets in `meta` are hidden.

    Raises:
        TypeError, ValueError: `meta` is not JSON.
    """
    plain = json.loads(json.dumps(redact_value(meta), default=str))
    created = datetime.now(UTC).isoformat(timespec="seconds")
    return Manifest(version, tuple(sorted(files, key=lambda f: f.path)), created, plain)


def parse_manifest(text: bytes, where: str) -> Manifest:
    """Read ``manifest.json``; keys added by later formats are passed over.

    Raises:
        StorageFailed: reason corrupt: it is no manifest, or a path in it would leave the folder.
    """
    try:
        value = json.loads(text)
        files = tuple(FileEntry(str(f["path"]), int(f["size_bytes"]), str(f["sha256"])) for f in value["files"])
        manifest = Manifest(str(value["version"]), files, str(value["created"]), dict(value["meta"]))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StorageFailed(
            f"{where} is not a manifest: {type(error).__name__}: {error}",
            reason="corrupt",
            hint="publish this version again under another name, or delete it",
        ) from error
    bad = next((f.path for f in files if any(unfit(part) for part in f.path.split("/"))), None)
    if bad is not None:
        raise StorageFailed(f"{where} names a file {bad!r} outside its folder", reason="corrupt")
    return manifest
