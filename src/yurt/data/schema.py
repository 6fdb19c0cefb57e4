"""What a record holds: features with a dtype and a shape.

::

    Schema({
        "window": Feature("float32", (36, 10)),     a fixed array
        "start_unix_s": Feature("int64"),           a scalar
        "tokens": Feature("int64", (None,)),        as many as each record has
        "origin": "string",                         short for Feature("string")
    })

A tf.train.Example knows three kinds of values: float32, int64 and bytes. The other dtypes travel in the one that
holds them without loss: float16 in floats, the integers up to 64 bits and bool in int64; float64, uint64 and
arrays of small integers as the bytes of the array, little-endian (`stored="raw"`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from yurt.data.errors import DataError, guess

Stored = Literal["list", "raw"]
#: The kind of value in a tf.train.Example that a dtype's list is written as, by its number in the message.
BYTES, FLOATS, INTS = 1, 2, 3
KIND_NAMES: Final = {BYTES: "bytes", FLOATS: "float32", INTS: "int64"}

_LISTS: Final = {
    "string": BYTES,
    "float16": FLOATS,
    "float32": FLOATS,
    "bool": INTS,
    **{f"{sign}int{bits}": INTS for bits in (8, 16, 32, 64) for sign in ("", "u")},
}
DTYPES: Final = (*sorted(_LISTS), "float64")
_RAW_ONLY: Final = frozenset({"float64", "uint64"})
_RAW_ARRAYS: Final = frozenset({"int8", "uint8", "int16", "uint16", "bool"})
#: How many rows a packed record has is written as this feature.
ROWS: Final = "yurt/rows"
LENGTHS: Final = "/yurt/lengths"


@dataclass(frozen=True)
class Feature:
    """One feature. `shape` is () for a scalar; None as its first number means as many as each record has.

    `stored` is how a record holds it: "list" (TensorFlow's usual lists) or "raw" (the array's bytes, little-endian);
    left out, what suits the dtype. Raises DataError.
    """

    dtype: str
    shape: tuple[int | None, ...] = ()
    stored: Stored | None = None
    about: str = ""

    def __post_init__(self) -> None:
        if self.dtype == "bytes":
            object.__setattr__(self, "dtype", "string")
        if self.dtype not in DTYPES:
            raise DataError(f"{self.dtype!r} is no dtype of a feature", hint=guess(self.dtype, DTYPES))
        object.__setattr__(self, "shape", _shape(self.shape))
        if self.stored not in (None, "list", "raw"):
            raise DataError(f"stored={self.stored!r} is unknown", hint=guess(str(self.stored), ("list", "raw")))
        if self.stored is None:
            raw = self.dtype in _RAW_ONLY or (self.dtype in _RAW_ARRAYS and self.shape != ())
            object.__setattr__(self, "stored", "raw" if raw else "list")
        elif self.stored == "raw" and self.dtype == "string":
            raise DataError("a string is bytes already: it cannot be stored raw")
        elif self.stored == "list" and self.dtype in _RAW_ONLY:
            raise DataError(f"no list of a tf.train.Example holds {self.dtype} without loss", hint="stored='raw'")

    @property
    def variable(self) -> bool:
        """Whether each record has its own length."""
        return bool(self.shape) and self.shape[0] is None

    @property
    def row_shape(self) -> tuple[int, ...]:
        """The fixed part of the shape."""
        return tuple(size for size in self.shape if size is not None)

    @property
    def size(self) -> int:
        """Values in one row, or in one step of a row of variable length."""
        return math.prod(self.row_shape)

    @property
    def numpy(self) -> np.dtype[Any]:
        """The dtype of arrays, little-endian; object for strings."""
        return np.dtype(object) if self.dtype == "string" else np.dtype(self.dtype).newbyteorder("<")

    @property
    def kind(self) -> int:
        """The kind of value a record holds it as: `BYTES`, `FLOATS` or `INTS`."""
        return BYTES if self.stored == "raw" else _LISTS[self.dtype]

    def as_json(self) -> dict[str, Any]:
        """For the schema's file."""
        about = {"about": self.about} if self.about else {}
        return {"dtype": self.dtype, "shape": list(self.shape), "stored": self.stored, **about}

    def __str__(self) -> str:
        sizes = ", ".join("any" if size is None else str(size) for size in self.shape)
        return f"{self.dtype} ({sizes})" if self.shape else self.dtype


Described = Feature | str | tuple[str, Iterable[int | None]]


@dataclass(frozen=True)
class Schema(Mapping[str, Feature]):
    """Features by name. Takes Feature values, ``"int64"``, or ``("float32", (36, 10))``. Raises DataError."""

    features: Mapping[str, Feature] = field(default_factory=dict)

    def __init__(self, features: Mapping[str, Described]) -> None:
        made = {name: _feature(name, value) for name, value in features.items()}
        if not made:
            raise DataError("a schema without features describes nothing")
        object.__setattr__(self, "features", made)

    def __getitem__(self, name: str) -> Feature:
        return self.features[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.features)

    def __len__(self) -> int:
        return len(self.features)

    def __hash__(self) -> int:
        return hash(tuple(self.features.items()))

    def only(self, names: Iterable[str]) -> Schema:
        """The named features alone. Raises DataError for a name that there is not."""
        wanted = list(names)
        for name in wanted:
            if name not in self.features:
                raise DataError(f"there is no feature {name!r}", hint=guess(name, self.features))
        return Schema({name: self.features[name] for name in wanted})

    @classmethod
    def of(cls, columns: Mapping[str, Any]) -> Schema:
        """The schema of arrays whose first axis counts rows. Raises DataError for what has no dtype of its own."""
        return cls({name: infer(name, value) for name, value in columns.items()})

    def as_json(self) -> dict[str, Any]:
        """For the schema's file."""
        return {name: feature.as_json() for name, feature in self.features.items()}

    @classmethod
    def from_json(cls, value: Any, file: str) -> Schema:
        """As `as_json` wrote it, or as a person did. Raises DataError with what would be right."""
        if not isinstance(value, Mapping):
            raise DataError(f"{file}: features must be an object of name and feature")
        features: dict[str, Described] = {}
        keys = ("dtype", "shape", "stored", "about")
        for name, entry in value.items():
            if not isinstance(entry, Mapping):
                raise DataError(f"{file}: feature {name} must be an object", hint='{"dtype": "float32", "shape": [2]}')
            for key in entry:
                if key not in keys:
                    raise DataError(f"{file}: feature {name} has no key {key!r}", hint=guess(key, keys))
            if "dtype" not in entry:
                raise DataError(f"{file}: feature {name} has no dtype")
            try:
                features[name] = Feature(
                    str(entry["dtype"]), entry.get("shape", ()), entry.get("stored"), str(entry.get("about", ""))
                )
            except DataError as error:
                raise DataError(f"{file}: feature {name}: {error}", hint=error.hint) from None
        return cls(features)


def infer(name: str, column: Any) -> Feature:
    """The feature of one column: an array whose first axis counts rows, or a sequence of rows. Raises DataError."""
    if not isinstance(column, np.ndarray) or column.dtype == object:
        rows = [row for row in column if row is not None]
        if not rows:
            raise DataError(f"column {name} is empty, so its dtype is unknown", hint="give a schema")
        if isinstance(rows[0], str | bytes):
            return Feature("string")
        arrays = [np.asarray(row) for row in rows]
        first = arrays[0]
        if any(array.shape[1:] != first.shape[1:] or array.ndim != first.ndim for array in arrays):
            raise DataError(f"the rows of column {name} have different shapes", hint="give a schema")
        dtype = np.result_type(*{array.dtype for array in arrays})
        if len({array.shape for array in arrays}) == 1:
            return _of_numpy(name, dtype, first.shape)
        return _of_numpy(name, dtype, (None, *first.shape[1:]))
    return _of_numpy(name, column.dtype, column.shape[1:])


def _of_numpy(name: str, dtype: np.dtype[Any], shape: tuple[int | None, ...]) -> Feature:
    if dtype.kind in "US" or dtype.kind == "T":
        return Feature("string", shape)
    if dtype.name not in DTYPES:
        raise DataError(f"column {name} is {dtype}, which no feature holds", hint="turn it into numbers or strings")
    return Feature(dtype.name, shape)


def _feature(name: str, value: Described) -> Feature:
    if not isinstance(name, str) or not name:
        raise DataError(f"a feature's name is a text, not {name!r}")
    if name == ROWS or name.endswith(LENGTHS):
        raise DataError(f"the name {name} is Yurt's own")
    try:
        if isinstance(value, Feature):
            return value
        if isinstance(value, str):
            return Feature(value)
        if isinstance(value, tuple | list) and len(value) == 2:
            return Feature(value[0], tuple(value[1]))
    except DataError as error:
        raise DataError(f"feature {name}: {error}", hint=error.hint) from None
    raise DataError(f"feature {name}: {value!r} describes no feature", hint='write ("float32", (36, 10)) or "int64"')


def _shape(value: Any) -> tuple[int | None, ...]:
    if isinstance(value, int) or value is None:
        raise DataError(f"a shape is a list of sizes, not {value!r}", hint=f"write ({value},)")
    sizes = tuple(value)
    for place, size in enumerate(sizes):
        if size is None and place:
            raise DataError(f"only the first size of a shape may be None, not that of {sizes}")
        if size is not None and (isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1):
            raise DataError(f"{size!r} is no size of a shape", hint="sizes are 1 or more; None first: any number")
    return tuple(size if size is None else int(size) for size in sizes)


Columns = Mapping[str, NDArray[Any]]
