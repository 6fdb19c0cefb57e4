"""Who reads what: files or elements for each worker, and the same number of steps for all. No file is touched.

By files: worker w of N has the files w, w+N, w+2N... of the sorted list. By elements: everybody reads all in one
order and keeps a slice of each global batch, so N workers see exactly the batches that one would.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from yurt.data.errors import DataError

By = Literal["auto", "files", "elements"]
#: Above this share of rows that equal steps would leave out, files are not what is divided.
_MOST_LEFT_OUT: Final = 0.05


@dataclass(frozen=True, slots=True)
class Task:
    """This process among those that read: `index` of `workers`."""

    workers: int = 1
    index: int = 0


@dataclass(frozen=True, slots=True)
class Share:
    """What one worker gets in an epoch: which files (by number), rows there, rows a step, rows it uses."""

    files: tuple[int, ...]
    rows: int
    batch: int
    used: int


@dataclass(frozen=True, slots=True)
class Plan:
    """The same for all workers but for `shares`.

    `steps` are the steps of an epoch, the last of which has `last` rows a worker if that is not 0.
    `left_out` are the rows of an epoch that nobody sees (others each epoch, where there is a shuffle).
    """

    by: Literal["files", "elements"]
    batch: int
    steps: int
    last: int
    shares: tuple[Share, ...]
    left_out: int
    note: str | None

    @property
    def full_steps(self) -> int:
        """Steps with a whole batch."""
        return self.steps - bool(self.last)


def task_from(environment: Mapping[str, str] | None = None) -> Task:
    """This task by TF_CONFIG (or the file that YURT_TF_CONFIG_FILE names); alone where neither is set.

    The chief counts as the first worker, unless there are parameter servers: then it only coordinates. An
    evaluator, a parameter server and such a chief read all. Raises DataError.
    """
    env = os.environ if environment is None else environment
    text = env.get("TF_CONFIG", "")
    if not text and (file := env.get("YURT_TF_CONFIG_FILE")) and Path(file).is_file():
        text = Path(file).read_text(encoding="utf-8")
    try:
        config: Any = json.loads(text or "{}")
        cluster, task = config.get("cluster", {}), config.get("task", {})
        role, index = task.get("type", "worker"), int(task.get("index", 0))
        chiefs = len(cluster.get("chief", ())) + len(cluster.get("master", ()))
        workers = len(cluster.get("worker", ()))
    except (ValueError, AttributeError, TypeError):
        raise DataError("TF_CONFIG is not the JSON that TensorFlow knows", hint=text[:200]) from None
    if cluster.get("ps"):
        chiefs = 0 if role == "worker" else chiefs
        return Task(workers, index) if role == "worker" and workers else Task()
    if role in ("chief", "master"):
        return Task(max(1, chiefs + workers), 0)
    if role == "worker":
        return Task(max(1, chiefs + workers), chiefs + index)
    return Task()


def plan(rows: Sequence[int], batch: int, workers: int = 1, *, by: By = "auto", remainder: bool = False) -> Plan:
    """Divide files of so many `rows` among `workers`, `batch` rows a step over all of them.

    `remainder` keeps the rows that fill no whole batch, in one more step, as far as all workers can have the same
    number of them. Raises DataError where there is less than one step.
    """
    if workers < 1 or batch < workers:
        raise DataError(f"a global batch of {batch:,} rows is less than one for each of {workers:,} workers")
    if by not in ("auto", "files", "elements"):
        raise DataError(f"by={by!r} is unknown", hint="auto, files or elements")
    if by == "files" and len(rows) < workers:
        raise DataError(
            f"{len(rows):,} files cannot be divided among {workers:,} workers",
            hint="by='elements' divides batches; more shards while writing is faster to read",
        )
    note = None
    chosen: Literal["files", "elements"] = "elements" if by == "elements" else "files"
    if by == "auto":
        if len(rows) < workers:
            chosen = "elements"
            note = (
                f"fewer files than workers ({len(rows):,} and {workers:,}): every worker reads all of them and keeps "
                "its part of each batch"
            )
        elif workers > 1:
            trial = _by_files(rows, batch, workers, remainder=remainder)
            # What no whole batch is made of is left out either way.
            lost = trial.left_out - _by_elements(rows, batch, workers, remainder=remainder).left_out
            if lost > _MOST_LEFT_OUT * sum(rows):
                chosen = "elements"
                note = (
                    f"the files are uneven: divided among {workers:,} workers they would leave out {lost:,} of "
                    f"{sum(rows):,} rows, so every worker reads all and keeps its part of each batch"
                )
    made = (_by_files if chosen == "files" else _by_elements)(rows, batch, workers, remainder=remainder)
    if not made.steps:
        raise DataError(
            f"{sum(rows):,} rows are less than one step of {batch:,} rows for {workers:,} worker(s)",
            hint="a smaller batch, or remainder=True to keep what fills none",
        )
    return Plan(made.by, made.batch, made.steps, made.last, made.shares, made.left_out, note)


def shares_of(batch: int, workers: int) -> list[int]:
    """Rows of a global batch for each worker; they differ by one at most, the first have more."""
    return [batch // workers + (worker < batch % workers) for worker in range(workers)]


def _by_files(rows: Sequence[int], batch: int, workers: int, *, remainder: bool) -> Plan:
    own = [tuple(range(worker, len(rows), workers)) for worker in range(workers)]
    have = [sum(rows[number] for number in files) for files in own]
    sizes = shares_of(batch, workers)
    full = min(count // size for count, size in zip(have, sizes, strict=True))
    rest = min(count - full * size for count, size in zip(have, sizes, strict=True))
    last = min(rest, *sizes) if remainder else 0
    return _plan("files", batch, full, last, sizes, list(zip(own, have, strict=True)), sum(rows))


def _by_elements(rows: Sequence[int], batch: int, workers: int, *, remainder: bool) -> Plan:
    total = sum(rows)
    full = total // batch
    last = (total - full * batch) // workers if remainder else 0
    everything = [(tuple(range(len(rows))), total)] * workers
    return _plan("elements", batch, full, last, shares_of(batch, workers), everything, total)


def _plan(
    by: Literal["files", "elements"],
    batch: int,
    full: int,
    last: int,
    sizes: list[int],
    own: list[tuple[tuple[int, ...], int]],
    total: int,
) -> Plan:
    shares = tuple(Share(files, have, size, full * size + last) for (files, have), size in zip(own, sizes, strict=True))
    return Plan(by, batch, full + bool(last), last, shares, total - sum(share.used for share in shares), None)
