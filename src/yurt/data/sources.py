"""Where rows come from: arrays, pandas, an iterator, CSV and Parquet, all as blocks of columns.

A source tells how many rows it has if it knows; then each shard is a stretch of it, which can be written alone and
again. Otherwise its rows are dealt to all shards in turn.
"""

from __future__ import annotations

import glob
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import numpy as np

from yurt.data.columns import conform
from yurt.data.errors import DataError
from yurt.data.framing import crc
from yurt.data.schema import Schema

Block = tuple[dict[str, Any], int]
BLOCK: Final = 8192


class Source(Protocol):
    """Rows in blocks."""

    schema: Schema
    rows: int | None

    def fingerprint(self) -> str | None:
        """Something that changes when the rows do; None where that cannot be known."""

    def blocks(self, first: int = 0, end: int | None = None) -> Iterator[Block]:
        """The rows from `first` to `end`, checked against the schema."""


class Arrays:
    """Columns in memory: a mapping of arrays (or sequences of rows), in an order of rows if one is given."""

    def __init__(self, columns: Mapping[str, Any], schema: Schema | None, order: Any = None) -> None:
        self.schema = schema or Schema.of(columns)
        missing = next((name for name in self.schema if name not in columns), None)
        if missing is not None:
            conform(self.schema, columns)  # says it
        self._columns, self._order = columns, order
        counts = {name: len(columns[name]) for name in self.schema}
        self.rows: int | None = next(iter(counts.values()))
        if len(set(counts.values())) > 1:
            told = ", ".join(f"{name} {count:,}" for name, count in counts.items())
            raise DataError(f"the columns have different numbers of rows: {told}")

    def fingerprint(self) -> str | None:
        """Row counts, dtypes and a checksum of every column that is one array; none for objects."""
        parts = [str(self.rows)]
        for name in self.schema:
            column = self._columns[name]
            if not isinstance(column, np.ndarray) or column.dtype == object:
                return None
            sample = np.ascontiguousarray(column[:: max(1, len(column) // 4096)])
            parts.append(f"{name}:{column.dtype}:{column.shape}:{crc(sample.tobytes()):08x}")
        if self._order is not None:
            parts.append(f"order:{crc(np.ascontiguousarray(self._order).tobytes()):08x}")
        return ";".join(parts)

    def blocks(self, first: int = 0, end: int | None = None) -> Iterator[Block]:
        """Stretches of the arrays."""
        stop = self.rows or 0 if end is None else end
        for at in range(first, stop, BLOCK):
            until = min(at + BLOCK, stop)
            if self._order is None:
                part = {name: self._columns[name][at:until] for name in self.schema}
            else:
                rows = self._order[at:until]
                part = {name: _take(self._columns[name], rows) for name in self.schema}
            yield conform(self.schema, part, first_row=at)


def _take(column: Any, rows: Any) -> Any:
    return column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows]


class Rows:
    """An iterator of rows, each a mapping of feature and value; or of pandas frames. It can be gone through once."""

    rows: int | None = None

    def __init__(self, rows: Iterable[Any], schema: Schema | None) -> None:
        iterator = iter(rows)
        first = list(itertools.islice(iterator, 1))
        if not first:
            raise DataError("there is no row to write")
        self._rows = itertools.chain(first, iterator)
        one = first[0]
        if not isinstance(one, Mapping) and not is_frame(one):
            raise DataError(f"a row is a mapping of feature and value, not {type(one).__name__}")
        self.schema = schema or (Schema.of(frame_columns(one)) if is_frame(one) else _of_row(one))

    def fingerprint(self) -> str | None:
        """None: nobody knows what an iterator will give."""
        return None

    def blocks(self, first: int = 0, end: int | None = None) -> Iterator[Block]:  # noqa: ARG002
        """All rows, once."""
        number = 0
        waiting: list[Mapping[str, Any]] = []
        for row in self._rows:
            if is_frame(row):
                yield conform(self.schema, frame_columns(row), first_row=number)
                number += len(row)
                continue
            if not isinstance(row, Mapping):
                raise DataError(f"row {number + len(waiting):,} is {type(row).__name__}, not a mapping")
            waiting.append(row)
            if len(waiting) == BLOCK:
                yield self._block(waiting, number)
                number, waiting = number + BLOCK, []
        if waiting:
            yield self._block(waiting, number)

    def _block(self, rows: Sequence[Mapping[str, Any]], number: int) -> Block:
        columns = {}
        for name in self.schema:
            try:
                columns[name] = [row[name] for row in rows]
            except KeyError:
                at = next(at for at, row in enumerate(rows) if name not in row)
                raise DataError(f"row {number + at:,} has no feature {name}") from None
        return conform(self.schema, columns, first_row=number)


def _of_row(row: Mapping[str, Any]) -> Schema:
    return Schema.of({name: [value] for name, value in row.items()})


def is_frame(value: Any) -> bool:
    """Whether it is a pandas DataFrame, without importing pandas."""
    return type(value).__name__ == "DataFrame" and hasattr(value, "columns") and hasattr(value, "iloc")


def frame_columns(frame: Any) -> dict[str, Any]:
    """A DataFrame's columns as arrays; nullable and text columns as objects with None where nothing is."""
    columns: dict[str, Any] = {}
    for name in frame.columns:
        series = frame[name]
        array = series.to_numpy()
        # A float that is absent is NaN; of other kinds it is told as absent when it is written.
        if not isinstance(series.dtype, np.dtype) and not str(series.dtype).lower().startswith("float"):
            absent = series.isna().to_numpy()
            if absent.any():
                array = series.to_numpy(dtype=object)
                array[absent] = None
        columns[str(name)] = array
    return columns


def concatenated(schema: Schema, blocks: Sequence[Block]) -> Block:
    """Several blocks as one."""
    if len(blocks) == 1:
        return blocks[0]
    columns: dict[str, Any] = {}
    for name in schema:
        parts = [block[name] for block, _ in blocks]
        lists = isinstance(parts[0], list)
        columns[name] = [row for part in parts for row in part] if lists else np.concatenate(parts)
    return columns, sum(rows for _, rows in blocks)


def source_of(data: Any, schema: Schema | None, shuffle: int | None = None) -> Source:
    """What `write` was given, as a source. Raises DataError for what it cannot be."""
    from yurt.data.tables import Tables, is_table

    order = None
    if isinstance(data, str | os.PathLike):
        paths = sorted(glob.glob(str(data))) if glob.has_magic(str(data)) else [str(data)]  # noqa: PTH207
        if not paths:
            raise DataError(f"no file matches {data}")
        data = [Path(path) for path in paths]
    if isinstance(data, list | tuple) and data and all(isinstance(item, str | os.PathLike) for item in data):
        source: Source = Tables.open([Path(item) for item in data], schema)
    elif is_table(data):
        source = Tables(data, schema)
    elif is_frame(data) or isinstance(data, Mapping):
        columns = frame_columns(data) if is_frame(data) else data
        if shuffle is not None and len(columns):
            rows = len(next(iter(columns.values())))
            order = np.random.default_rng(shuffle).permutation(rows)
        return Arrays(columns, schema, order)
    elif isinstance(data, np.ndarray):
        raise DataError("an array needs a name", hint='write({"window": array}, ...)')
    elif isinstance(data, Iterable):
        source = Rows(data, schema)
    else:
        raise DataError(f"{type(data).__name__} cannot be written", hint="arrays by name, pandas, rows, CSV or Parquet")
    if shuffle is not None:
        raise DataError(
            "rows that come as a stream cannot be shuffled while they are written",
            hint="they are dealt to all shards in turn; shuffle=... while reading does the rest",
        )
    return source
