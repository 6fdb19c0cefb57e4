"""``check``: whether files are good to train on, and what so many workers would get of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from yurt.data.checking import FileReport, check_file, check_lost, layout_for
from yurt.data.errors import DataError, Fault
from yurt.data.find import Paths, find
from yurt.data.index import Layout
from yurt.data.sharing import By, Plan, plan


@dataclass(frozen=True)
class Checked:
    """What was found. `plan` is None where the good rows are too few for one step, then `plan_problem` says so."""

    name: str
    layout: Layout
    files: list[FileReport]
    faults: list[Fault]
    faults_total: int
    passed_over: list[str]
    plan: Plan | None
    plan_problem: str | None

    @property
    def ok(self) -> bool:
        """Whether training could start on it."""
        return not self.faults and self.plan is not None

    @property
    def records(self) -> int:
        """Good records."""
        return sum(file.records for file in self.files)

    @property
    def examples(self) -> int:
        """Good rows."""
        return sum(file.examples for file in self.files)

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(file.bytes for file in self.files)

    def as_json(self) -> dict[str, Any]:
        """For programs: see docs/data.md."""
        return {
            "ok": self.ok,
            "name": self.name,
            "compression": self.layout.compression,
            "packed": self.layout.packed,
            "files": [
                {
                    "name": file.path.name,
                    "bytes": file.bytes,
                    "records": file.records,
                    "examples": file.examples,
                    "bad_examples": file.bad_examples,
                }
                for file in self.files
            ],
            "records": self.records,
            "examples": self.examples,
            "bytes": self.bytes,
            "faults_total": self.faults_total,
            "faults": [asdict(fault) for fault in self.faults],
            "passed_over": self.passed_over,
            "plan": self._plan_as_json(),
            "plan_problem": self.plan_problem,
        }

    def _plan_as_json(self) -> dict[str, Any] | None:
        if self.plan is None:
            return None
        return {
            "by": self.plan.by,
            "batch": self.plan.batch,
            "steps": self.plan.steps,
            "left_out": self.plan.left_out,
            "note": self.plan.note,
            "workers": [
                {
                    "worker": number,
                    "files": [self.files[file].path.name for file in share.files],
                    "records": sum(self.files[file].records for file in share.files),
                    "examples": share.rows,
                    "batch": share.batch,
                    "used": share.used,
                }
                for number, share in enumerate(self.plan.shares)
            ],
        }


def check(path: Paths, *, workers: int = 1, batch: int | None = None, nan: bool = False, by: By = "auto") -> Checked:
    """Read every record of a set and compare it with its schema, and divide what is good among `workers`.

    `batch` is the global batch that steps are counted for; one row a worker if left out, so steps are rows. Without a
    schema beside the files they are held against their first record. Raises DataError where there are no files.
    """
    found = find(path)
    lost = check_lost(found)
    try:
        layout = layout_for(found)
    except DataError:
        from yurt.data.schema import Schema

        layout = Layout(Schema({"?": "string"}))  # nothing can be read, which is what the reports will say
    reports = [check_file(file, layout, found.index.get(file.name), nan=nan) for file in found.files]
    faults = lost + [fault for report in reports for fault in report.faults]
    total = len(lost) + sum(sum(report.kinds.values()) for report in reports)
    made, problem = None, None
    try:
        made = plan([report.examples for report in reports], batch or workers, workers, by=by)
    except DataError as error:
        problem = str(error) if not faults else "there are too few good rows for one step"
    return Checked(found.name, layout, reports, faults, total, found.passed_over, made, problem)
