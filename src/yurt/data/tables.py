"""CSV and Parquet as sources, through pyarrow, block by block. pyarrow is imported in this file alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from yurt.data.columns import conform
from yurt.data.errors import DataError, guess
from yurt.data.schema import Feature, Schema
from yurt.data.sources import BLOCK, Block

_SUFFIXES: Final = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}


def is_table(value: Any) -> bool:
    """Whether it is a pyarrow Table, without importing pyarrow."""
    return type(value).__name__ == "Table" and hasattr(value, "to_batches") and hasattr(value, "schema")


class Tables:
    """Files of one kind after each other, or one table in memory."""

    def __init__(self, table: Any, schema: Schema | None, *, files: Sequence[Path] = (), kind: str = "") -> None:
        self._table, self._files, self._kind = table, list(files), kind
        self._arrow = table.schema if table is not None else self._first_schema()
        names = [str(name) for name in self._arrow.names]
        for name in schema or ():
            if name not in names:
                where = self._files[0] if self._files else "the table"
                raise DataError(f"{where} has no column {name}", hint=guess(name, names, "its columns are"))
        self.schema = schema or Schema({name: _feature(name, self._arrow.field(name).type) for name in names})
        self.rows: int | None = table.num_rows if table is not None else self._count()

    @classmethod
    def open(cls, files: Sequence[Path], schema: Schema | None) -> Tables:
        """Files by their endings. Raises DataError."""
        kinds = set()
        for file in files:
            suffix = "".join(file.suffixes[-2:]) if file.suffix in (".gz", ".bz2") else file.suffix
            kind = _SUFFIXES.get(suffix.removesuffix(".gz").removesuffix(".bz2").lower())
            if kind is None:
                raise DataError(f"{file} is neither CSV nor Parquet by its name", hint=f"{', '.join(_SUFFIXES)}")
            if not file.is_file():
                raise DataError(f"there is no file {file}")
            kinds.add(kind)
        if len(kinds) > 1:
            raise DataError("CSV and Parquet files cannot be mixed in one call")
        return cls(None, schema, files=files, kind=kinds.pop())

    def fingerprint(self) -> str | None:
        """Names, sizes and times of change of the files; None for a table in memory."""
        if not self._files:
            return None
        stats = [(file, file.stat()) for file in self._files]
        return ";".join(f"{file.absolute()}:{stat.st_size}:{stat.st_mtime_ns}" for file, stat in stats)

    def blocks(self, first: int = 0, end: int | None = None) -> Iterator[Block]:
        """The rows from `first` to `end`; of a Parquet file only the row groups that hold them are read."""
        for at, batch in self._batches(first, end):
            begin, until = max(first - at, 0), batch.num_rows if end is None else min(batch.num_rows, end - at)
            if begin < until:
                part = batch.slice(begin, until - begin)
                columns = {name: _values(name, part.column(name), at + begin) for name in self.schema}
                yield conform(self.schema, columns, first_row=at + begin)

    def _batches(self, first: int, end: int | None) -> Iterator[tuple[int, Any]]:
        """Batches with the number of their first row."""
        if self._table is not None:
            stop = self._table.num_rows if end is None else end
            yield from _numbered(first, self._table.slice(first, stop - first).to_batches(max_chunksize=BLOCK))
            return
        at = 0
        for file in self._files:
            if self._kind == "csv":
                for start, batch in _numbered(at, self._csv(file)):
                    yield start, batch
                    at = start + batch.num_rows
                continue
            from pyarrow import parquet

            with parquet.ParquetFile(file) as opened:
                for group in range(opened.num_row_groups):
                    rows = opened.metadata.row_group(group).num_rows
                    if at + rows > first and (end is None or at < end):
                        batches = opened.iter_batches(BLOCK, row_groups=[group], columns=list(self.schema))
                        yield from _numbered(at, batches)
                    at += rows

    def _csv(self, file: Path) -> Any:
        pyarrow = arrow()
        from pyarrow import csv

        # What the schema names is read as it says; the rest as pyarrow finds it.
        types = {name: _arrow_type(feature) for name, feature in getattr(self, "schema", {}).items()}
        options = csv.ConvertOptions(column_types=types, strings_can_be_null=False)
        parse = csv.ParseOptions(delimiter="\t" if ".tsv" in file.suffixes else ",", newlines_in_values=True)
        try:
            return csv.open_csv(file, convert_options=options, parse_options=parse)
        except pyarrow.ArrowInvalid as error:
            raise DataError(f"{file}: {error}", hint="give a schema whose dtypes the values fit") from None

    def _first_schema(self) -> Any:
        arrow()
        if self._kind == "parquet":
            from pyarrow import parquet

            try:
                return parquet.read_schema(self._files[0])
            except (OSError, ValueError) as error:
                raise DataError(f"{self._files[0]} cannot be read as Parquet: {error}") from None
        return self._csv(self._files[0]).schema

    def _count(self) -> int | None:
        if self._kind != "parquet":
            return None
        from pyarrow import parquet

        return sum(int(parquet.read_metadata(file).num_rows) for file in self._files)


def _numbered(at: int, batches: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    for batch in batches:
        yield at, batch
        at += batch.num_rows


def arrow() -> Any:
    """Pyarrow. Raises DataError where it is not installed."""
    try:
        import pyarrow as pa
    except ImportError:
        raise DataError("CSV and Parquet are read with pyarrow", hint="pip install 'yurt[data]'") from None
    return pa


def _feature(name: str, kind: Any) -> Feature:
    """The feature of a column by its arrow type. Raises DataError."""
    types = arrow().types
    if types.is_list(kind) or types.is_large_list(kind):
        inner = _feature(name, kind.value_type)
        return Feature(inner.dtype, (None, *inner.shape))
    if types.is_fixed_size_list(kind):
        inner = _feature(name, kind.value_type)
        return Feature(inner.dtype, (kind.list_size, *inner.shape))
    if types.is_string(kind) or types.is_large_string(kind) or types.is_binary(kind) or types.is_large_binary(kind):
        return Feature("string")
    if types.is_dictionary(kind):
        return _feature(name, kind.value_type)
    try:
        return Feature(np.dtype(kind.to_pandas_dtype()).name)
    except (DataError, NotImplementedError, TypeError):
        raise DataError(f"column {name} is {kind}, which no feature holds", hint="leave it out of the schema") from None


def _arrow_type(feature: Feature) -> Any:
    pyarrow = arrow()
    if feature.shape:
        raise DataError(f"a column of a CSV file holds one value a row, not {feature}")
    return pyarrow.string() if feature.dtype == "string" else pyarrow.from_numpy_dtype(np.dtype(feature.dtype))


def _values(name: str, column: Any, first_row: int) -> Any:
    """A column as numpy, or as a list of rows. Raises DataError for a number that is absent."""
    types = arrow().types
    kind = column.type
    if types.is_dictionary(kind):
        column = column.dictionary_decode()
        kind = column.type
    if column.null_count and not types.is_floating(kind):
        row = first_row + next(at for at, null in enumerate(column.is_null().to_pylist()) if null)
        raise DataError(f"row {row:,} of column {name} is absent", hint="fill it or leave the row out")
    if types.is_fixed_size_list(kind) and types.is_primitive(kind.value_type):
        flat = column.flatten().to_numpy(zero_copy_only=False)
        return flat.reshape(len(column), kind.list_size)
    if types.is_list(kind) or types.is_large_list(kind) or types.is_fixed_size_list(kind):
        return column.to_pylist()
    if types.is_primitive(kind):
        return column.to_numpy(zero_copy_only=False)
    return column.to_pylist()
