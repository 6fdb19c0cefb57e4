"""The layout of files that have no schema beside them, from their first records."""

from __future__ import annotations

import itertools
import zlib
from pathlib import Path

from yurt.data.compression import detect, open_records
from yurt.data.decoding import NotAnExample, Values, decode
from yurt.data.framing import records
from yurt.data.index import Layout
from yurt.data.schema import BYTES, FLOATS, INTS, ROWS, Feature, Schema

_LOOK_AT = 32
_DTYPES = {BYTES: "string", FLOATS: "float32", INTS: "int64"}


def guess_layout(path: Path) -> Layout | None:
    """A flat guess: scalars, arrays of one axis, or of variable length where the first records differ.

    None where no record can be read. What a packed record's bytes mean is only in its schema, so those stay bytes.
    """
    seen: dict[str, list[tuple[int, int]]] = {}
    count = 0
    try:
        compression = detect(path)
        if compression is None:
            return None
        with open_records(path, compression) as file:
            for _, record in itertools.islice(records(file), _LOOK_AT):
                if isinstance(record, bytes):
                    _see(decode(record), record, seen)
                    count += 1
    except (OSError, EOFError, zlib.error, NotAnExample):
        pass
    features = {name: _feature(values) for name, values in seen.items() if len(values) == count and name != ROWS}
    return Layout(Schema(features), compression) if features and compression else None


def _see(found: dict[str, Values], record: bytes, seen: dict[str, list[tuple[int, int]]]) -> None:
    for name, values in found.items():
        if values.kind:
            seen.setdefault(name, []).append((values.kind, values.count(record)))


def _feature(values: list[tuple[int, int]]) -> Feature:
    kind = values[0][0]
    counts = {count for _, count in values}
    if counts == {1}:
        return Feature(_DTYPES[kind])
    if len(counts) == 1 and 0 not in counts:
        return Feature(_DTYPES[kind], (counts.pop(),))
    return Feature(_DTYPES[kind], (None,))
