"""Columns in the form the writer takes: checked against the schema, row counts equal, strings as bytes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from yurt.data.errors import DataError, guess
from yurt.data.schema import Feature, Schema


def conform(schema: Schema, columns: Mapping[str, Any], *, first_row: int = 0) -> tuple[dict[str, Any], int]:
    """The columns as arrays of the schema's dtypes, and their number of rows.

    Fixed features become arrays (rows, *shape); strings and those of variable length become lists of rows.
    `first_row` is only for messages. Raises DataError: what is missing, of another shape, or would lose by the dtype.
    """
    for name in schema:
        if name not in columns:
            raise DataError(f"there is no column {name!r} among the data", hint=guess(name, columns))
    counts = {name: len(columns[name]) for name in schema}
    rows = next(iter(counts.values()))
    for name, count in counts.items():
        if count != rows:
            first = next(iter(counts))
            raise DataError(f"column {name} has {count:,} rows, column {first} has {rows:,}")
    return {name: _column(name, feature, columns[name], first_row) for name, feature in schema.items()}, rows


def _column(name: str, feature: Feature, column: Any, first_row: int) -> Any:
    if feature.variable:
        return [_row(name, feature, row, first_row + at) for at, row in enumerate(column)]
    if feature.dtype == "string":
        return [_text(name, feature, row, first_row + at) for at, row in enumerate(column)]
    array = _array(name, column, first_row)
    if array.shape[1:] != feature.shape:
        raise DataError(f"column {name} has rows of shape {array.shape[1:]}, the schema says {feature.shape}")
    return cast(name, feature, array, first_row)


def _array(name: str, column: Any, first_row: int) -> NDArray[Any]:
    """Rows as one array. Raises DataError where they are not alike or one is absent."""
    if isinstance(column, np.ndarray) and column.dtype != object:
        return column
    rows = list(column)
    for at, row in enumerate(rows):
        if row is None:
            raise DataError(f"row {first_row + at:,} of column {name} is absent", hint="fill it or leave the row out")
    try:
        return np.asarray(rows) if rows and not isinstance(rows[0], np.ndarray) else np.stack(rows)
    except ValueError:
        shapes = list(dict.fromkeys(np.shape(row) for row in rows))[:2]
        raise DataError(
            f"the rows of column {name} have different shapes: {' and '.join(map(str, shapes))}",
            hint="for variable length write None as the first size of its shape",
        ) from None


def cast(name: str, feature: Feature, array: NDArray[Any], first_row: int = 0) -> NDArray[Any]:
    """The array in the feature's dtype. Raises DataError where values would change."""
    wanted = feature.numpy
    if array.dtype == wanted:
        return array
    if array.dtype.kind not in "biuf":
        raise DataError(f"column {name} is {array.dtype}, the schema says {feature}")
    if array.dtype.kind == "f" and wanted.kind == "f":  # fewer digits are what a person asks for; an overflow is not
        with np.errstate(over="ignore"):
            made = array.astype(wanted)
        lost = np.isinf(made) & np.isfinite(array)
    elif np.can_cast(array.dtype, wanted, "safe"):
        return array.astype(wanted)
    else:
        with np.errstate(invalid="ignore", over="ignore"):
            made = array.astype(wanted)
            # Back in the first type equal, and of the same sign: nothing was wrapped, cut or rounded.
            lost = (made.astype(array.dtype) != array) | ((made < 0) != (array < 0))
            if array.dtype.kind == "f" and wanted.kind in "iu":
                lost |= np.abs(array) >= 2.0 ** (wanted.itemsize * 8 - (wanted.kind == "i"))
    if lost.any():
        place = tuple(int(index) for index in np.argwhere(lost)[0])
        row = first_row + (place[0] if place else 0)
        raise DataError(
            f"row {row:,} of column {name} holds {array[place]!s}, which {feature.dtype} does not hold",
            hint=f"the column is {array.dtype}; change the schema or the values",
        )
    return made


def _row(name: str, feature: Feature, row: Any, number: int) -> Any:
    """One row of variable length."""
    if row is None:
        raise DataError(f"row {number:,} of column {name} is absent", hint="an empty list is a row without values")
    if feature.dtype == "string":
        if isinstance(row, str | bytes):
            raise DataError(f"row {number:,} of column {name} is one string, the schema says a list of them")
        array = np.empty((0, *feature.row_shape), object) if len(row) == 0 else np.asarray(row, object)
        if array.ndim != len(feature.shape) or array.shape[1:] != feature.row_shape:
            raise DataError(f"row {number:,} of column {name} has shape {array.shape}, the schema says {feature}")
        return np.array([as_bytes(name, value, number) for value in array.flat], object).reshape(array.shape)
    array = np.asarray(row)
    if array.size == 0:
        return np.empty((0, *feature.row_shape), feature.numpy)
    if array.ndim != len(feature.shape) or array.shape[1:] != feature.row_shape:
        raise DataError(f"row {number:,} of column {name} has shape {array.shape}, the schema says {feature}")
    return cast(name, feature, array[None], number)[0]


def _text(name: str, feature: Feature, row: Any, number: int) -> Any:
    if not feature.shape:
        return as_bytes(name, row, number)
    array = np.asarray(row, object)
    if array.shape != feature.shape:
        raise DataError(f"row {number:,} of column {name} has shape {array.shape}, the schema says {feature}")
    return np.array([as_bytes(name, value, number) for value in array.flat], object).reshape(array.shape)


def as_bytes(name: str, value: Any, number: int) -> bytes:
    """A string as its bytes in UTF-8. Raises DataError for anything else."""
    if isinstance(value, bytes):
        return bytes(value)
    if isinstance(value, str):
        return str(value).encode()
    what = "absent" if value is None or value != value else f"{type(value).__name__}"  # noqa: PLR0124 - NaN
    raise DataError(f"row {number:,} of column {name} is {what}, the schema says string")
