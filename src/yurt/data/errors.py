"""What can be wrong with data: one exception, and one value for each fault found."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from yurt.errors import YurtError


class DataError(YurtError):
    """The data, their schema or a call with them is wrong; `faults` holds what was found in files, in order."""

    exit_code = 2

    def __init__(self, message: str, *, hint: str | None = None, faults: Iterable[Fault] = ()) -> None:
        super().__init__(message, hint=hint)
        self.faults = list(faults)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong in one file.

    `record` counts from 0; `offset_bytes` is where the record begins, in the unpacked content of a compressed file.
    Both are None for a fault of the whole file. `kind` is one of `KINDS`.
    """

    file: str
    kind: str
    message: str
    record: int | None = None
    offset_bytes: int | None = None
    feature: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        place = self.file
        if self.record is not None:
            place += f": record {self.record:,} (at byte {self.offset_bytes or 0:,})"
        feature = f"feature {self.feature} " if self.feature else ""
        return f"{place}: {feature}{self.message}"


#: Every kind of fault, and what it says.
KINDS = {
    "empty": "the file has no content",
    "no-records": "the file can be read and holds no record",
    "truncated": "the file ends inside a record",
    "framing": "what should be a record's header is none; the rest of the file cannot be read",
    "checksum": "the content of a record is not what was written",
    "too-large": "a record is larger than protobuf can read",
    "compression": "the file is compressed otherwise than declared",
    "unreadable": "the file cannot be opened or unpacked",
    "not-tfrecord": "the file is none of TFRecord, plain or compressed",
    "not-example": "a record is no tf.train.Example",
    "missing": "a record lacks a feature",
    "type": "a feature has another type than the schema says",
    "shape": "a feature has another number of values than the schema says",
    "value": "a value does not fit the feature's dtype",
    "nan": "a feature holds NaN or infinity",
    "size": "the file's size or checksum is not what the index says",
    "lost": "a file that belongs to the set is not there",
}


def guess(name: str, known: Iterable[str], what: str = "there are") -> str:
    """The hint for a name that there is not: ``did you mean window?``, or what there is."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean {near[0]}?" if near else f"{what} {', '.join(names) or 'none'}"
