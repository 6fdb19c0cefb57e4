"""Files with bad records, made readable: a copy of each in a temporary folder, without what is bad.

TensorFlow cannot pass over one broken record, so what is skipped is left out of a copy. Only files with something
bad are copied. How much was skipped is told in ``data.json`` beside the file that YURT_PROGRESS_FILE names::

    {"skipped": 3, "sets": [{"path": "data/train", "skipped": 3, "files": {"train-00001-of-00008.tfrecord": 3}}]}

Every task looks at all files, so each tells the same numbers: they are not to be added up over tasks.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from yurt.contract.names import PROGRESS_FILE
from yurt.data.checking import FileReport
from yurt.data.compression import Compression, open_records, packer
from yurt.data.framing import Broken, frame, records
from yurt.data.index import write_json

_told: dict[str, dict[str, Any]] = {}


@dataclass(frozen=True)
class Mended:
    """The files to read in place of the originals (in their order), their rows, and rows left out by file name."""

    files: list[Path]
    rows: list[int]
    skipped: dict[str, int]


def mend(reports: list[FileReport], compression: Compression) -> Mended:
    """Files without their bad records. A file of which nothing is left is left out."""
    files, rows, skipped = [], [], {}
    folder: Path | None = None
    for number, report in enumerate(reports):
        if report.bad or report.cut or report.bad_examples:
            skipped[report.path.name] = report.bad_examples
        if not report.records:
            continue
        path = report.path
        if report.bad or report.cut:
            if folder is None:
                folder = Path(tempfile.mkdtemp(prefix="yurt-data-"))
                atexit.register(shutil.rmtree, folder, ignore_errors=True)
            path = folder / f"{number:05d}-{report.path.name}"
            _copy(report, path, compression)
        files.append(path)
        rows.append(report.examples)
    return Mended(files, rows, skipped)


def _copy(report: FileReport, path: Path, compression: Compression) -> None:
    """The good records of a file, in the same compression."""
    bad = set(report.bad)
    pack = packer(compression, 1)
    with path.open("wb") as out:
        left = report.records
        with open_records(report.path, compression) as file:
            for number, (_, record) in enumerate(records(file)):
                if not left:
                    break
                if isinstance(record, Broken) or number in bad:
                    continue
                out.write(pack.compress(b"".join(frame([record]))))
                left -= 1
        out.write(pack.flush())


def tell(path: str, skipped: dict[str, int]) -> None:
    """Write what was skipped of a set where the run's summary finds it, if this is a task of a run."""
    progress = os.environ.get(PROGRESS_FILE)
    if not progress:
        return
    _told[path] = {"path": path, "skipped": sum(skipped.values()), "files": skipped}
    sets = list(_told.values())
    write_json(Path(progress).with_name("data.json"), {"skipped": sum(one["skipped"] for one in sets), "sets": sets})
