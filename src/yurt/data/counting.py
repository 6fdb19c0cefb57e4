"""How many rows a file has, where no index says it."""

from __future__ import annotations

import os
import zlib
from pathlib import Path

from yurt.data.checking import check_file
from yurt.data.compression import Compression, open_records
from yurt.data.errors import DataError
from yurt.data.framing import FOOTER_BYTES, HEADER_BYTES, length_in
from yurt.data.index import Layout


def count_examples(path: Path, layout: Layout) -> int:
    """Rows in a file: from record to record by their lengths, contents unread where the file is plain.

    Packed files are read whole, since each record has its own count. Raises DataError for a broken file.
    """
    if layout.packed is not None:
        report = check_file(path, layout)
        if report.faults:
            raise DataError(str(report.faults[0]), faults=report.faults)
        return report.examples
    return count_records(path, layout.compression)


def count_records(path: Path, compression: Compression) -> int:
    """Records in a file. Raises DataError where a header is none or the file ends too soon."""
    count, at = 0, 0
    size = path.stat().st_size
    try:
        with open_records(path, compression) as file:
            while head := file.read(HEADER_BYTES):
                length = length_in(head)
                if length is None:
                    raise DataError(f"{path}: record {count:,} (at byte {at:,}) has no valid header")
                at += HEADER_BYTES + length + FOOTER_BYTES
                if compression == "none":
                    if at > size:
                        raise DataError(f"{path}: record {count:,} is cut off at the end of the file")
                    file.seek(length + FOOTER_BYTES, os.SEEK_CUR)
                elif len(file.read(length + FOOTER_BYTES)) < length + FOOTER_BYTES:
                    raise DataError(f"{path}: record {count:,} is cut off at the end of the file")
                count += 1
    except (EOFError, zlib.error) as error:
        raise DataError(f"{path}: after record {count:,} the packed file is broken: {error}") from None
    return count
