"""Files checked before training: what is wrong, in which file, record and feature, without TensorFlow."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from yurt.data.compression import Compression, detect, open_records
from yurt.data.conforming import Conforming
from yurt.data.errors import DataError, Fault
from yurt.data.find import Found
from yurt.data.framing import Broken, records
from yurt.data.index import Layout, Shard

#: As many faults of one file are told one by one; the rest are counted.
MOST_TOLD: Final = 20


@dataclass(slots=True)
class FileReport:
    """What one file holds. `bad` are the numbers of records that cannot be used; `cut` says that more may be lost.

    `bad_examples` counts rows in bad records, and those the index says and nobody found.
    """

    path: Path
    bytes: int = 0
    compression: Compression | None = None
    records: int = 0
    examples: int = 0
    bad: list[int] = field(default_factory=list)
    bad_examples: int = 0
    cut: bool = False
    faults: list[Fault] = field(default_factory=list)
    kinds: Counter[str] = field(default_factory=Counter)

    def add(self, fault: Fault) -> None:
        """Count a fault, and keep it if it is among the first."""
        self.kinds[fault.kind] += 1
        if len(self.faults) < MOST_TOLD:
            self.faults.append(fault)


def check_file(
    path: Path, layout: Layout, shard: Shard | None = None, *, nan: bool = False, first: int | None = None
) -> FileReport:
    """Read one file and compare every record (or the `first` few) with the layout.

    A fault that leaves the next record readable costs that record; one that does not (a broken header, a file that
    ends too soon) costs the rest of the file. Nothing is raised for what is wrong with the data.
    """
    report = FileReport(path)
    name = str(path)
    try:
        report.bytes = path.stat().st_size
        if not report.bytes:
            report.add(Fault(name, "empty", "is empty"))
            report.bad_examples = shard.examples if shard else 0
            return report
        report.compression = detect(path)
    except OSError as error:
        report.add(Fault(name, "unreadable", f"cannot be read: {error.strerror or error}"))
        return report
    if wrong := _whole_file(report, layout, shard):
        report.add(wrong)
        if wrong.kind in ("not-tfrecord", "compression"):
            report.cut = True
            report.bad_examples = shard.examples if shard else 0
            return report
    conforming = Conforming(layout, nan=nan)
    number = 0
    for number, offset, record in _records(report):
        if isinstance(record, Broken):
            report.add(Fault(name, record.kind, record.message, number, offset))
            if record.kind == "too-large" or not record.over:
                report.bad.append(number)
                report.bad_examples += layout.packed or 1
            report.cut |= record.over
            continue
        rows, wrong_features = conforming.look(record)
        for kind, feature, message in wrong_features:
            report.add(Fault(name, kind, message, number, offset, feature))
        if wrong_features:
            report.bad.append(number)
            report.bad_examples += max(rows, 1)
        else:
            report.records += 1
            report.examples += rows
        if first is not None and number + 1 >= first:
            return report
    if not report.records and not report.kinds:
        report.add(Fault(name, "no-records", "holds no record"))
    if shard and report.cut:
        report.bad_examples = max(shard.examples - report.examples, 1)
    elif report.cut:
        report.bad_examples += 1
    return report


def _records(report: FileReport) -> Iterator[tuple[int, int, bytes | Broken]]:
    """Records with number and offset; a packed stream that breaks is told as a broken record."""
    number, end = 0, 0
    try:
        with open_records(report.path, report.compression or "none") as file:
            for offset, record in records(file):
                yield number, offset, record
                number += 1
                end = offset + (len(record) + 16 if isinstance(record, bytes) else 0)
    except EOFError:
        yield number, end, Broken("truncated", "the packed file is cut off here", True)
    except zlib.error as error:
        yield number, end, Broken("unreadable", f"the packed file is damaged here ({error})", True)
    except OSError as error:
        yield number, end, Broken("unreadable", f"the file cannot be read here ({error.strerror or error})", True)


def _whole_file(report: FileReport, layout: Layout, shard: Shard | None) -> Fault | None:
    """What can be said without reading the records."""
    name, found = str(report.path), report.compression
    if found is None:
        size_hint = "its first bytes are neither a record's header nor GZIP's nor ZLIB's"
        return Fault(name, "not-tfrecord", f"is no TFRecord file: {size_hint}")
    if found != layout.compression:
        return Fault(name, "compression", f"is {_as_word(found)}, and was declared {_as_word(layout.compression)}")
    if shard and shard.bytes != report.bytes:
        return Fault(name, "size", f"has {report.bytes:,} bytes, the index says {shard.bytes:,}")
    return None


def _as_word(compression: Compression) -> str:
    return "not compressed" if compression == "none" else compression.upper()


def check_lost(found: Found) -> list[Fault]:
    """Files that should be there and are not."""
    parent = found.files[0].parent if found.files else Path(found.name).parent
    says = "the index names it" if found.index else "the numbers of the other files say that it should be"
    return [Fault(str(parent / name), "lost", f"is not there; {says}") for name in found.lost]


def layout_for(found: Found, layout: Layout | None = None) -> Layout:
    """The layout to hold files against: the given one, that of the schema's file, or one guessed from the first record.

    Raises DataError where there is nothing to guess from.
    """
    if layout is not None:
        return layout
    if found.layout is not None:
        return found.layout
    from yurt.data.guessing import guess_layout

    for path in found.files:
        if guessed := guess_layout(path):
            return guessed
    raise DataError(
        f"{found.name} has no schema, and no record to guess one from",
        hint="`yurt data check` says what is wrong with the files",
    )


def stop(faults: list[Fault], what: str) -> None:
    """Raise a DataError that names the first fault and counts the others, if there are any."""
    if faults:
        rest = f" (and {len(faults) - 1:,} more)" if len(faults) > 1 else ""
        raise DataError(f"{faults[0]}{rest}", hint=faults[0].hint or f"yurt data check {what}", faults=faults)
