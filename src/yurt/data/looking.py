"""``inspect``: what a set holds, with a few records and a histogram of each feature. Reads no more than it must."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from yurt.data.checking import layout_for
from yurt.data.compression import detect, open_records
from yurt.data.conforming import Conforming
from yurt.data.counting import count_examples
from yurt.data.decoding import Values, decode, rows_in, value_of
from yurt.data.errors import DataError
from yurt.data.find import Paths, find
from yurt.data.framing import records
from yurt.data.index import Layout
from yurt.data.schema import LENGTHS, ROWS, Feature

#: Rows of the sample that histograms are made from, spread over the files.
_SAMPLE: Final = 2000
_BINS: Final = 20


@dataclass(frozen=True)
class FileFacts:
    """One file; `examples` is None where it cannot be told, then `problem` says why."""

    name: str
    bytes: int
    examples: int | None
    problem: str | None = None


@dataclass(frozen=True)
class Histogram:
    """Of one feature, over the sample.

    Numbers: `counts` in equal bins from `low` to `high` (of the finite values), `mean`, `std`, `not_finite`.
    Strings: `top`, the most frequent values and how often. Variable length: `lengths`, least and most a row.
    """

    values: int
    low: float | None = None
    high: float | None = None
    mean: float | None = None
    std: float | None = None
    counts: tuple[int, ...] = ()
    not_finite: int = 0
    top: tuple[tuple[str, int], ...] = ()
    lengths: tuple[int, int] | None = None


@dataclass(frozen=True)
class Inspected:
    """What `inspect` found. `guessed` says that there is no schema beside the files."""

    name: str
    layout: Layout
    guessed: bool
    files: list[FileFacts]
    rows: list[dict[str, Any]]
    sampled: int
    histograms: dict[str, Histogram]
    passed_over: list[str]

    @property
    def examples(self) -> int:
        """Rows, of the files where they can be told."""
        return sum(file.examples or 0 for file in self.files)

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files)


def inspect(path: Paths, *, rows: int = 3) -> Inspected:
    """Look at a set: its schema, counts and sizes, the first `rows` rows, and histograms of a sample.

    Bad records are passed over here; `check` names them. Raises DataError where there are no files, or no record.
    """
    found = find(path)
    layout = layout_for(found)
    files = []
    for file in found.files:
        shard = found.index.get(file.name)
        problem = None
        try:
            examples = shard.examples if shard else count_examples(file, layout)
        except DataError as error:
            examples, problem = None, str(error)
        files.append(FileFacts(file.name, file.stat().st_size, examples, problem))
    sample = list(_sample(found.files, layout, max(rows, _SAMPLE // max(1, len(found.files)))))
    histograms = {name: _histogram(feature, [row[name] for row in sample]) for name, feature in layout.schema.items()}
    return Inspected(
        found.name, layout, found.layout is None, files, sample[:rows], len(sample), histograms, found.passed_over
    )


def _sample(files: Any, layout: Layout, each: int) -> Iterator[dict[str, Any]]:
    """The first rows of every file."""
    for file in files:
        left = each
        try:
            kind = detect(file)
            if kind is None:
                continue
            conforming = Conforming(layout)
            with open_records(file, kind) as opened:
                for _, record in records(opened):
                    if left <= 0:
                        break
                    if not isinstance(record, bytes) or conforming.look(record)[1]:
                        continue
                    for row in rows_of(layout, record)[:left]:
                        yield row
                        left -= 1
        except (OSError, EOFError, zlib.error):
            continue


def rows_of(layout: Layout, record: bytes) -> list[dict[str, Any]]:
    """The rows of a good record: one, or as many as are packed in it."""
    found = decode(record)
    if layout.packed is None:
        return [{name: value_of(feature, found[name], record) for name, feature in layout.schema.items()}]
    rows = rows_in(found[ROWS], record)
    columns = {name: _unpacked(name, feature, found, record, rows) for name, feature in layout.schema.items()}
    return [{name: column[row] for name, column in columns.items()} for row in range(rows)]


def _unpacked(name: str, feature: Feature, found: dict[str, Values], record: bytes, rows: int) -> Any:
    strings = found[name].strings(record)
    text = feature.dtype == "string"
    flat: NDArray[Any] = np.array(strings, object) if text else np.frombuffer(b"".join(strings), feature.numpy)
    shaped = flat.reshape(-1, *feature.row_shape)
    if not feature.variable:
        return shaped
    lengths = np.frombuffer(b"".join(found[name + LENGTHS].strings(record)), "<i4")
    return np.split(shaped, np.cumsum(lengths)[: rows - 1])


def _histogram(feature: Feature, rows: list[Any]) -> Histogram:
    lengths = None
    if feature.variable and rows:
        counts = [len(row) for row in rows]
        lengths = (min(counts), max(counts))
    if feature.dtype == "string":
        values = [value for row in rows for value in ([row] if isinstance(row, bytes) else np.ravel(row).tolist())]
        unique: dict[bytes, int] = {}
        for value in values:
            unique[value] = unique.get(value, 0) + 1
        top = sorted(unique.items(), key=lambda item: (-item[1], item[0]))[:5]
        return Histogram(len(values), top=tuple((shown(text), count) for text, count in top), lengths=lengths)
    flat = np.concatenate([np.ravel(row) for row in rows]).astype(float) if rows else np.empty(0)
    finite = flat[np.isfinite(flat)]
    if not len(finite):
        return Histogram(len(flat), not_finite=len(flat), lengths=lengths)
    low, high = float(finite.min()), float(finite.max())
    bins = np.histogram(finite, _BINS, (low, high))[0] if high > low else np.array([len(finite)])
    return Histogram(
        len(flat),
        low,
        high,
        float(finite.mean()),
        float(finite.std()),
        tuple(int(count) for count in bins),
        len(flat) - len(finite),
        lengths=lengths,
    )


def shown(text: bytes, most: int = 40) -> str:
    """Bytes as a person can read them, cut short."""
    try:
        value = text.decode()
        value = value if value.isprintable() else repr(value)[1:-1]
    except UnicodeDecodeError:
        value = repr(text)
    return value if len(value) <= most else f"{value[: most - 3]}..."
