"""Rows as tf.train.Example records, many rows at a time and without protobuf.

The same rows make the same bytes: features sorted by name, lists packed, as protobuf's own writer does it::

    Example   0A len  Features
    Features  0A len  entry, for each feature
    entry     0A len name  12 len Feature
    Feature   0A len BytesList | 12 len FloatList | 1A len Int64List
    BytesList 0A len bytes, for each value;  FloatList 0A len float32...;  Int64List 0A len varint...
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yurt.data.framing import crc, header
from yurt.data.schema import BYTES, FLOATS, INTS, LENGTHS, ROWS, Feature, Schema

Bytes = NDArray[np.uint8]
_TAGS = {BYTES: b"\x0a", FLOATS: b"\x12", INTS: b"\x1a"}


@lru_cache(maxsize=1 << 14)
def varint(value: int) -> bytes:
    """A number of 0 or more, seven bits a byte, the lowest first."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def field(tag: bytes, content: bytes) -> bytes:
    """A field with a length."""
    return tag + varint(len(content)) + content


@lru_cache(maxsize=1 << 14)
def _before(name: str, kind: int, values_bytes: int) -> bytes:
    """All of a feature's entry that stands before its values, where they are `values_bytes` long in their list."""
    if kind == BYTES or not values_bytes:
        inner, listed = b"", values_bytes
    else:
        inner = b"\x0a" + varint(values_bytes)
        listed = len(inner) + values_bytes
    outer = _TAGS[kind] + varint(listed)
    key = field(b"\x0a", name.encode())
    value = b"\x12" + varint(len(outer) + listed)
    return b"\x0a" + varint(len(key) + len(value) + len(outer) + listed) + key + value + outer + inner


def encode(schema: Schema, columns: dict[str, Any], rows: int) -> list[bytes]:
    """One record a row. `columns` are as `yurt.data.columns.conform` makes them."""
    fixed, blocks = _fixed_width(schema, columns, rows)
    if fixed is not None:
        blob, size = fixed.tobytes(), fixed.shape[1]
        return [blob[at : at + size] for at in range(0, len(blob), size)] if size else []
    joined = map(b"".join, zip(*(_as_list(block) for block in blocks), strict=True))
    return [b"\x0a" + varint(len(features)) + features for features in joined]


def encode_framed(schema: Schema, columns: dict[str, Any], rows: int) -> bytes | None:
    """All rows as records with their framing, in one piece, where every record has the same size; else None.

    Nothing happens a record but one call for its checksum.
    """
    fixed, _ = _fixed_width(schema, columns, rows)
    if fixed is None:
        return None
    size = fixed.shape[1]
    blob = fixed.tobytes()
    checksums = np.fromiter((crc(blob[at : at + size]) for at in range(0, len(blob), size)), np.uint32, rows)
    masks = (checksums >> np.uint32(15) | checksums << np.uint32(17)) + np.uint32(0xA282EAD8)
    out = np.empty((rows, size + 16), np.uint8)
    out[:, :12] = np.frombuffer(header(size), np.uint8)
    out[:, 12:-4] = fixed
    out[:, -4:] = masks.astype("<u4").view(np.uint8).reshape(rows, 4)
    return out.tobytes()


def encode_packed(schema: Schema, columns: dict[str, Any], rows: int, packed: int) -> list[bytes]:
    """`packed` rows a record, the last may have fewer: each feature as the bytes of its array, and the count."""
    out = []
    for at in range(0, rows, packed):
        until = min(at + packed, rows)
        entries = {ROWS: _entry(ROWS, INTS, varint(until - at))}
        for name, feature in schema.items():
            column = columns[name][at:until]
            if feature.variable:
                lengths = np.fromiter((len(row) for row in column), "<i4", until - at)
                entries[name + LENGTHS] = _raw(name + LENGTHS, lengths.tobytes())
            if feature.dtype == "string":
                entries[name] = _strings(name, [value for row in column for value in _flat(row)])
            elif feature.variable:
                whole = np.concatenate(list(column)) if len(column) else np.empty(0)
                entries[name] = _raw(name, whole.astype(feature.numpy, copy=False).tobytes())
            else:
                entries[name] = _raw(name, np.ascontiguousarray(column).tobytes())
        out.append(field(b"\x0a", b"".join(entries[name] for name in _sorted(entries))))
    return out


def _fixed_width(schema: Schema, columns: dict[str, Any], rows: int) -> tuple[Bytes | None, list[Bytes | list[bytes]]]:
    """All records as one array (rows, bytes) if all have one size; and the features' blocks, in their order."""
    blocks = [_block(name, schema[name], columns[name], rows) for name in _sorted(schema)]
    if not rows or not all(isinstance(block, np.ndarray) for block in blocks):
        return None, blocks
    width = sum(block.shape[1] for block in blocks if isinstance(block, np.ndarray))
    head = np.frombuffer(b"\x0a" + varint(width), np.uint8)
    heads = np.broadcast_to(head, (rows, len(head)))
    return np.concatenate([heads, *blocks], axis=1), blocks


def _sorted(names: Any) -> list[str]:
    return sorted(names, key=str.encode)


def _block(name: str, feature: Feature, column: Any, rows: int) -> Bytes | list[bytes]:
    """One feature of all rows: bytes (rows, n) where every row has the same size, else one piece a row."""
    if feature.dtype == "string":
        return [_strings(name, list(_flat(row))) for row in column]
    if feature.kind == INTS:
        return _ints(name, feature, column, rows)
    wire = np.dtype("<f4") if feature.kind == FLOATS else feature.numpy
    if feature.variable:
        encoded = _raw if feature.kind == BYTES else _floats
        return [encoded(name, np.ascontiguousarray(row, wire).tobytes()) for row in column]
    values = np.ascontiguousarray(column, wire).reshape(rows, -1)
    body = values.view(np.uint8).reshape(rows, values.shape[1] * wire.itemsize)
    size = body.shape[1]
    before = _before(name, BYTES, len(field(b"\x0a", b"\0" * size))) + b"\x0a" + varint(size)
    if feature.kind == FLOATS:
        before = _before(name, FLOATS, size)
    start = np.frombuffer(before, np.uint8)
    return np.concatenate([np.broadcast_to(start, (rows, len(start))), body], axis=1)


def _ints(name: str, feature: Feature, column: Any, rows: int) -> Bytes | list[bytes]:
    """Varints of all rows at once."""
    if feature.variable:
        lengths = np.fromiter((len(row) * feature.size for row in column), np.int64, rows)
        whole = np.concatenate([np.asarray(row).reshape(-1) for row in column]) if rows else np.empty(0)
    else:
        whole = np.asarray(column).reshape(-1)
        lengths = np.full(rows, feature.size, np.int64)
    stream, sizes = varints(whole)
    ends = np.concatenate([[0], np.cumsum(sizes)])[np.concatenate([[0], np.cumsum(lengths)])]
    widths = np.diff(ends)
    if rows and (widths == widths[0]).all() and widths[0]:
        start = np.frombuffer(_before(name, INTS, int(widths[0])), np.uint8)
        body = np.frombuffer(stream, np.uint8).reshape(rows, -1)
        return np.concatenate([np.broadcast_to(start, (rows, len(start))), body], axis=1)
    edges = ends.tolist()
    return [_before(name, INTS, until - at) + stream[at:until] for at, until in pairwise(edges)]


def varints(values: NDArray[Any]) -> tuple[bytes, NDArray[np.int64]]:
    """Whole numbers as varints (negative ones as their 64 bits), and how many bytes each took."""
    bits = np.asarray(values).astype(np.int64).view(np.uint64)
    sizes = np.ones(len(bits), np.int64)
    for place in range(1, 10):
        more = bits >= np.uint64(1 << 7 * place)
        if not more.any():
            break
        sizes += more
    out = np.empty(int(sizes.sum()), np.uint8)
    starts = np.cumsum(sizes) - sizes
    for place in range(int(sizes.max(initial=0))):
        here = sizes > place
        digit = (bits[here] >> np.uint64(7 * place)) & np.uint64(0x7F)
        out[starts[here] + place] = digit | ((sizes[here] > place + 1).astype(np.uint64) << np.uint64(7))
    return out.tobytes(), sizes


def _entry(name: str, kind: int, values: bytes) -> bytes:
    return _before(name, kind, len(values)) + values


def _raw(name: str, content: bytes) -> bytes:
    return _entry(name, BYTES, field(b"\x0a", content))


def _floats(name: str, content: bytes) -> bytes:
    return _entry(name, FLOATS, content)


def _strings(name: str, values: list[bytes]) -> bytes:
    return _entry(name, BYTES, b"".join([field(b"\x0a", value) for value in values]))


def _flat(row: Any) -> Sequence[bytes]:
    return (row,) if isinstance(row, bytes) else np.asarray(row, object).reshape(-1).tolist()


def _as_list(block: Bytes | list[bytes]) -> list[bytes]:
    if isinstance(block, list):
        return block
    blob, size = block.tobytes(), block.shape[1]
    return [blob[at : at + size] for at in range(0, len(blob), size)]
