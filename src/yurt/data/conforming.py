"""Whether a record holds what the schema says: one verdict a record, fast where records are alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from yurt.data.decoding import NotAnExample, Values, decode, rows_in, value_of
from yurt.data.errors import guess
from yurt.data.index import Layout
from yurt.data.schema import BYTES, FLOATS, INTS, KIND_NAMES, LENGTHS, ROWS, Feature

Wrong = tuple[str, str | None, str]
_MOST_SHAPES: Final = 64


@dataclass(frozen=True, slots=True)
class _Alike:
    """Records of one length: what all of them have in common, and where the values of floats lie."""

    fixed: tuple[tuple[int, int, bytes], ...]
    floats: tuple[tuple[str, int, int], ...]


class Conforming:
    """Looks at records of one file."""

    def __init__(self, layout: Layout, *, nan: bool = False) -> None:
        self._layout, self._nan = layout, nan
        self._alike: dict[int, _Alike] = {}

    def look(self, record: bytes) -> tuple[int, list[Wrong]]:
        """Rows in the record, and what is wrong with it: kind, feature, message."""
        alike = self._alike.get(len(record))
        if alike is not None and all(record[at:until] == same for at, until, same in alike.fixed):
            if not self._nan:
                return 1, []
            looked = (self._not_finite(name, np.frombuffer(record[a:b], "<f4"), 1) for name, a, b in alike.floats)
            return 1, [bad for bad in looked if bad]
        try:
            found = decode(record)
        except NotAnExample as error:
            return 1, [("not-example", None, f"is no tf.train.Example: {error}")]
        if self._layout.packed is not None:
            return self._packed(found, record)
        wrong = [
            bad for name, feature in self._layout.schema.items() if (bad := self._feature(name, feature, found, record))
        ]
        if not wrong and len(self._alike) < _MOST_SHAPES:
            self._learn(found, record)
        return 1, wrong

    def _learn(self, found: dict[str, Values], record: bytes) -> None:
        """Remember a good record whose every wanted value is a fixed run of floats or raw bytes."""
        free = []
        for name, feature in self._layout.schema.items():
            values = found[name]
            if feature.variable or feature.dtype == "string" or feature.kind == INTS or len(values.spans) != 1:
                return
            if self._nan and (feature.dtype != "float32" or feature.kind != FLOATS):
                return
            free.append((name, *values.spans[0]))
        if len(found) != len(free):
            return
        edges = [
            0,
            *(edge for _, at, until in sorted(free, key=lambda item: item[1]) for edge in (at, until)),
            len(record),
        ]
        spans = zip(edges[::2], edges[1::2], strict=True)
        fixed = tuple((at, until, record[at:until]) for at, until in spans if until > at)
        self._alike[len(record)] = _Alike(fixed, tuple(free))

    def _feature(self, name: str, feature: Feature, found: dict[str, Values], record: bytes) -> Wrong | None:
        values = found.get(name)
        if values is None or values.kind == 0:
            have = [other for other, its in found.items() if its.kind]
            return "missing", name, f"is missing; {guess(name, have, 'the record has')}"
        if values.kind != feature.kind:
            return "type", name, f"is {KIND_NAMES[values.kind]}, the schema says {self._said(feature)}"
        if feature.stored == "raw":
            return self._raw(name, feature, values, record)
        count = values.count(record)
        if feature.variable:
            if count % feature.size:
                return (
                    "shape",
                    name,
                    f"has {count:,} values, no multiple of {feature.size:,}; the schema says {feature}",
                )
        elif count != feature.size:
            return "shape", name, f"has {count:,} values, the schema says {feature.size:,}: {feature}"
        if feature.kind == INTS and feature.dtype != "int64":
            return _in_range(name, feature, values, record)
        if self._nan and feature.kind == FLOATS:
            return self._not_finite(name, values.floats(record), 1)
        return None

    def _raw(self, name: str, feature: Feature, values: Values, record: bytes) -> Wrong | None:
        size = sum(until - at for at, until in values.spans)
        step = feature.size * feature.numpy.itemsize
        if len(values.spans) != 1:
            return "shape", name, f"has {len(values.spans):,} byte strings, the schema says one with {feature}"
        if size % step if feature.variable else size != step:
            of = f"a multiple of {step:,}" if feature.variable else f"{step:,}"
            return "shape", name, f"has {size:,} bytes, the schema says {of}: {feature}, stored raw"
        if self._nan and feature.numpy.kind == "f":
            return self._not_finite(name, np.asarray(value_of(feature, values, record)), 1)
        return None

    def _packed(self, found: dict[str, Values], record: bytes) -> tuple[int, list[Wrong]]:
        """A record of many rows: its count, and arrays of that many rows."""
        told = found.get(ROWS)
        rows = rows_in(told, record) if told and told.kind == INTS else -1
        if rows < 1:
            return 1, [("missing", None, f"is not packed, the schema says {self._layout.packed} rows a record")]
        wrong = []
        for name, feature in self._layout.schema.items():
            if bad := self._packed_feature(name, feature, found, record, rows):
                wrong.append(bad)
        return rows, wrong

    def _packed_feature(
        self, name: str, feature: Feature, found: dict[str, Values], record: bytes, rows: int
    ) -> Wrong | None:
        values = found.get(name)
        if values is None or values.kind == 0:
            have = [other for other in found if other != ROWS and not other.endswith(LENGTHS)]
            return "missing", name, f"is missing; {guess(name, have, 'the record has')}"
        if values.kind != BYTES:
            return "type", name, f"is {KIND_NAMES[values.kind]}, a packed record has {feature} as bytes"
        steps = rows
        if feature.variable:
            lengths = found.get(name + LENGTHS)
            raw = b"".join(lengths.strings(record)) if lengths and lengths.kind == BYTES else b""
            if len(raw) != 4 * rows:
                return "shape", name, f"has lengths of {len(raw) // 4:,} rows, the record has {rows:,}"
            steps = int(np.frombuffer(raw, "<i4").sum())
        if feature.dtype == "string":
            count, want, what = len(values.spans), steps * feature.size, "strings"
        else:
            count, want, what = (
                sum(b - a for a, b in values.spans),
                steps * feature.size * feature.numpy.itemsize,
                "bytes",
            )
        if count != want:
            return "shape", name, f"has {count:,} {what}, {rows:,} rows of {feature} are {want:,}"
        if self._nan and feature.numpy.kind == "f":
            flat = np.frombuffer(b"".join(values.strings(record)), feature.numpy)
            return self._not_finite(name, flat, rows)
        return None

    def _not_finite(self, name: str, values: np.ndarray, rows: int) -> Wrong | None:
        finite = np.isfinite(values)
        if finite.all():
            return None
        flat = values.reshape(-1)
        first = int(np.flatnonzero(~finite.reshape(-1))[0])
        count = int((~finite).sum())
        feature = self._layout.schema[name]
        row = f"row {first // feature.size} of it, " if rows > 1 and not feature.variable else ""
        place = (
            np.unravel_index(first % feature.size, feature.row_shape)
            if feature.row_shape and not feature.variable
            else ()
        )
        where = f" at ({row}{', '.join(str(int(index)) for index in place)})" if place else ""
        return "nan", name, f"holds {flat[first]}{where}; {count:,} of {flat.size:,} values are not finite"

    @staticmethod
    def _said(feature: Feature) -> str:
        kind = KIND_NAMES[feature.kind]
        same = feature.dtype == kind or (feature.dtype, kind) == ("string", "bytes")
        return str(feature) if same else f"{feature}, stored as {kind}"


def _in_range(name: str, feature: Feature, values: Values, record: bytes) -> Wrong | None:
    numbers = values.ints(record)
    low, high = (0, 1) if feature.dtype == "bool" else (np.iinfo(feature.dtype).min, np.iinfo(feature.dtype).max)
    out = (numbers < low) | (numbers > high)
    if out.any():
        return "value", name, f"holds {numbers[out][0]:,}, which {feature.dtype} does not hold"
    return None
