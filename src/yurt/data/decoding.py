"""A tf.train.Example taken apart without protobuf: which features it has, of which kind, and where their values lie.

Any valid encoding is read, not only ours: lists packed or not, fields in any order, unknown fields left out, the last
entry of a name wins.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yurt.data.schema import BYTES, FLOATS, INTS, Feature

Span = tuple[int, int]
_VARINT, _FIXED64, _LEN, _FIXED32 = 0, 1, 2, 5


class NotAnExample(ValueError):
    """The bytes are no tf.train.Example."""


@dataclass(frozen=True, slots=True)
class Values:
    """One feature of one record: the kind (0: it has none), and its values as byte spans of the record.

    For bytes each span is a value; for float32 the spans are runs of four bytes each; for int64 runs of varints.
    """

    kind: int
    spans: tuple[Span, ...]

    def count(self, record: bytes) -> int:
        """How many values."""
        if self.kind == BYTES:
            return len(self.spans)
        if self.kind == FLOATS:
            return sum(until - at for at, until in self.spans) // 4
        return sum(1 for at, until in self.spans for byte in record[at:until] if byte < 0x80)

    def floats(self, record: bytes) -> NDArray[np.float32]:
        """Values of kind float32."""
        return np.frombuffer(b"".join(record[at:until] for at, until in self.spans), "<f4")

    def ints(self, record: bytes) -> NDArray[np.int64]:
        """Values of kind int64."""
        return unvarint(b"".join(record[at:until] for at, until in self.spans))

    def strings(self, record: bytes) -> list[bytes]:
        """Values of kind bytes."""
        return [record[at:until] for at, until in self.spans]


def decode(record: bytes) -> dict[str, Values]:
    """The features of a record. Raises NotAnExample."""
    found: dict[str, Values] = {}
    try:
        for number, kind, at, until in _fields(record, 0, len(record)):
            if number != 1:
                continue
            _expect(kind, _LEN)
            for inner, inner_kind, start, end in _fields(record, at, until):
                if inner == 1:
                    _expect(inner_kind, _LEN)
                    name, values = _map_entry(record, start, end)
                    found[name] = values
    except (IndexError, UnicodeDecodeError):
        raise NotAnExample("it ends in the middle of a field") from None
    return found


def _expect(kind: int, wanted: int) -> None:
    if kind != wanted:
        raise NotAnExample(f"a field has wire type {kind} where {wanted} belongs")


def _map_entry(record: bytes, at: int, until: int) -> tuple[str, Values]:
    name, values = "", Values(0, ())
    for number, kind, start, end in _fields(record, at, until):
        if number == 1:
            _expect(kind, _LEN)
            name = record[start:end].decode()
        elif number == 2:
            _expect(kind, _LEN)
            values = _feature(record, start, end)
    return name, values


def _feature(record: bytes, at: int, until: int) -> Values:
    found = 0
    spans: list[Span] = []
    for number, kind, start, end in _fields(record, at, until):
        if number not in (BYTES, FLOATS, INTS):
            continue
        _expect(kind, _LEN)
        if number != found:
            found, spans = number, []
        for inner, inner_kind, begin, stop in _fields(record, start, end):
            if inner != 1:
                continue
            allowed = {BYTES: (_LEN,), FLOATS: (_LEN, _FIXED32), INTS: (_LEN, _VARINT)}[found]
            if inner_kind not in allowed:
                _expect(inner_kind, allowed[0])
            if found == FLOATS and (stop - begin) % 4:
                raise NotAnExample("a list of float32 is no whole number of them")
            if found == INTS and stop > begin and record[stop - 1] > 0x7F:
                raise NotAnExample("a list of int64 ends inside a number")
            spans.append((begin, stop))
    return Values(found, tuple(spans))


def _fields(record: bytes, at: int, until: int) -> Iterator[tuple[int, int, int, int]]:
    """Number, wire type, and the span of the content, of each field of a message."""
    while at < until:
        tag, at = _number(record, at)
        kind = tag & 7
        start = at
        if kind == _LEN:
            size, start = _number(record, at)
            at = start + size
        elif kind == _VARINT:
            _, at = _number(record, at)
        elif kind == _FIXED32:
            at += 4
        elif kind == _FIXED64:
            at += 8
        else:
            raise NotAnExample(f"a field has wire type {kind}")
        if at > until or not tag >> 3:
            raise NotAnExample("a field is longer than the message it is in")
        yield tag >> 3, kind, start, at


def _number(record: bytes, at: int) -> tuple[int, int]:
    value = record[at]
    if value < 0x80:
        return value, at + 1
    value &= 0x7F
    for shift in range(7, 70, 7):
        at += 1
        byte = record[at]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at + 1
    raise NotAnExample("a number has more than ten bytes")


def unvarint(stream: bytes) -> NDArray[np.int64]:
    """All numbers of a run of varints."""
    digits = np.frombuffer(stream, np.uint8)
    ends = np.flatnonzero(digits < 0x80)
    if not len(ends):
        return np.empty(0, np.int64)
    starts = np.concatenate([[0], ends[:-1] + 1])
    places = np.arange(len(digits)) - np.repeat(starts, ends - starts + 1)
    parts = (digits & 0x7F).astype(np.uint64) << np.minimum(7 * places, 63).astype(np.uint64)
    return np.bitwise_or.reduceat(parts, starts).view(np.int64)


def value_of(feature: Feature, values: Values, record: bytes) -> Any:
    """One row of a feature as a person wants it: an array (of bytes for strings), a number, or bytes.

    The values are known to fit the feature.
    """
    if feature.dtype == "string":
        strings = values.strings(record)
        sizes = (-1, *feature.row_shape) if feature.variable else feature.row_shape
        return np.array(strings, object).reshape(sizes) if feature.shape else strings[0]
    if feature.kind == BYTES:
        flat: NDArray[Any] = np.frombuffer(b"".join(values.strings(record)), feature.numpy)
    else:
        flat = values.floats(record) if feature.kind == FLOATS else values.ints(record)
        flat = flat.astype(feature.numpy)
    shaped = flat.reshape(-1, *feature.row_shape) if feature.variable else flat.reshape(feature.row_shape)
    return shaped if feature.shape else shaped[()]


def rows_in(values: Values, record: bytes) -> int:
    """The number that a packed record says it has of rows."""
    numbers = values.ints(record)
    return int(numbers[0]) if len(numbers) == 1 else -1
