"""The two JSON files beside the records: ``<name>.schema.json`` and ``<name>.index.json``.

The schema says what a record holds and how it is stored; it is written first. The index says what each file holds
(records, examples, bytes, CRC32C of the file), and where values lie if that is the same in each record (see
`yurt.data.stride`); it is written last, so a set without one is not finished or not Yurt's. Both carry a version: a
newer one than this Yurt knows is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from yurt.data.compression import Compression, named
from yurt.data.errors import DataError, guess
from yurt.data.schema import Schema
from yurt.data.stride import Stride

VERSION: Final = 1
SCHEMA: Final = ".schema.json"
INDEX: Final = ".index.json"
_FORMATS: Final = {SCHEMA: "yurt-data-schema", INDEX: "yurt-data-index"}


@dataclass(frozen=True)
class Layout:
    """What a record holds and how: the features, the compression, rows a record (None: one, in plain features)."""

    schema: Schema
    compression: Compression = "none"
    packed: int | None = None

    def as_json(self) -> dict[str, Any]:
        """The schema's file."""
        return {
            "format": _FORMATS[SCHEMA],
            "version": VERSION,
            "compression": self.compression,
            "packed": self.packed,
            "features": self.schema.as_json(),
        }


@dataclass(frozen=True)
class Shard:
    """One finished file. `crc32c` is that of the file as it lies there, eight hex digits.

    `stride` is only known to who writes it; the index tells one for the whole set.
    """

    name: str
    records: int
    examples: int
    bytes: int
    crc32c: str
    stride: Stride | None = field(default=None, compare=False)

    def as_json(self) -> dict[str, Any]:
        """For the index."""
        return {key: value for key, value in asdict(self).items() if key != "stride"}


def file_name(name: str, shard: int, shards: int) -> str:
    """``train-00003-of-00008.tfrecord``."""
    return f"{name}-{shard:05d}-of-{shards:05d}.tfrecord"


def save_layout(folder: Path, name: str, layout: Layout) -> None:
    """Write the schema's file."""
    write_json(folder / f"{name}{SCHEMA}", layout.as_json())


def save_index(folder: Path, name: str, shards: list[Shard]) -> None:
    """Write the index."""
    value = {
        "format": _FORMATS[INDEX],
        "version": VERSION,
        "examples": sum(shard.examples for shard in shards),
        "records": sum(shard.records for shard in shards),
        "bytes": sum(shard.bytes for shard in shards),
        "files": [shard.as_json() for shard in shards],
    }
    # A key that a Yurt which does not know it passes over, so the version is the same.
    if (stride := shards[0].stride) is not None and all(shard.stride == stride for shard in shards):
        value["stride"] = stride.as_json()
    write_json(folder / f"{name}{INDEX}", value)


def load_layout(path: Path) -> Layout:
    """Read a schema's file. Raises DataError with what would be right."""
    value = _read(path, SCHEMA)
    keys = ("format", "version", "compression", "packed", "features")
    for key in value:
        if key not in keys:
            raise DataError(f"{path}: a schema has no key {key!r}", hint=guess(key, keys))
    packed = value.get("packed")
    if packed is not None and (not isinstance(packed, int) or isinstance(packed, bool) or packed < 1):
        raise DataError(f"{path}: packed is {packed!r}, not a number of rows", hint="null is one row a record")
    try:
        compression = named(value.get("compression"))
    except DataError as error:
        raise DataError(f"{path}: {error}", hint=error.hint) from None
    return Layout(Schema.from_json(value.get("features"), str(path)), compression, packed)


def load_index(path: Path) -> list[Shard]:
    """Read an index. Raises DataError."""
    value = _read(path, INDEX)
    try:
        return [Shard(**entry) for entry in value["files"]]
    except (KeyError, TypeError):
        raise DataError(f"{path}: its list of files is not as Yurt writes it") from None


def load_stride(path: Path) -> Stride | None:
    """The stride that an index tells, if its set has one. Raises DataError."""
    value = _read(path, INDEX).get("stride")
    try:
        return None if value is None else Stride.from_json(value)
    except (AttributeError, KeyError, TypeError, ValueError):
        raise DataError(f"{path}: its stride is not as Yurt writes it") from None


def _read(path: Path, kind: str) -> Mapping[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"there is no file {path}") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read as JSON: {error}") from None
    if not isinstance(value, dict) or value.get("format") != _FORMATS[kind]:
        raise DataError(f"{path} is not of the format {_FORMATS[kind]}")
    if value.get("version") != VERSION:
        raise DataError(
            f"{path} has version {value.get('version')!r} of its format, this Yurt knows {VERSION}",
            hint="a newer Yurt may have written it",
        )
    return value


def write_json(path: Path, value: Any) -> None:
    """Whole or not at all."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    scratch.write_text(json.dumps(value, indent=1) + "\n", encoding="utf-8")
    scratch.replace(path)
