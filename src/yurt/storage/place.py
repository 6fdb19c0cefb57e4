"""A place that holds published models: what folders and object stores have in common."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from yurt.storage.manifest import FileEntry, Manifest
from yurt.storage.model import ModelFile
from yurt.storage.urls import Location

PART_BYTES = 8 * 1024 * 1024
"""The size of a part of an upload; a file above it is sent in parts. Amazon S3 takes none below 5 MiB."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and in what pieces. `retry_timeout_s` bounds each request with all its retries."""

    retry_timeout_s: float = 120
    part_bytes: int = PART_BYTES


class Place(Protocol):
    """What a place can do. Every method raises StorageFailed."""

    location: Location

    def put(self, files: Sequence[ModelFile], version: str, meta: Mapping[str, Any]) -> Manifest:
        """Publish: files, manifest, ``latest``, in this order. Says how it is when it is there already."""

    def latest(self) -> str:
        """The version that ``latest`` points to."""

    def versions(self) -> list[str]:
        """The versions that have a manifest, oldest first."""

    def manifest(self, version: str) -> Manifest:
        """The manifest of a version."""

    def read(self, version: str, entry: FileEntry) -> Iterator[bytes]:
        """The bytes of one published file, in pieces; its size is checked first."""

    def check(self, needed_bytes: int) -> None:
        """Try to write here, and leave nothing behind."""


def open_place(location: Location, limits: Limits) -> Place:
    """The place at `location`. Object stores import their client here, folders import nothing.

    Raises:
        StorageFailed: the client for object stores is missing or its settings are wrong.
    """
    if location.scheme == "file":
        from yurt.storage.folder import Folder

        return Folder(location, limits)
    from yurt.storage.objects import ObjectStore

    return ObjectStore(location, limits)
