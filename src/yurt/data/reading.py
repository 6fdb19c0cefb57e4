"""``read``: one call for the tf.data pipeline of this task. TensorFlow is imported when the pipeline is asked for."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal

from yurt.data.checking import check_file, check_lost, layout_for, stop
from yurt.data.compression import named
from yurt.data.counting import count_examples
from yurt.data.errors import DataError, Fault, guess
from yurt.data.find import Found, Paths, find
from yurt.data.index import Layout
from yurt.data.mending import mend, tell
from yurt.data.orders import Content, Order
from yurt.data.schema import Described, Schema
from yurt.data.sharing import By, Plan, Task, plan, task_from
from yurt.data.stride import Regular, regular

Check = Literal["auto", "full", "quick", "none"]
Bad = Literal["stop", "skip"]
#: Up to so many bytes are checked record by record before training unless told otherwise: about two seconds.
_CHECKED_BYTES: Final = 256 * 1024 * 1024
_SHUFFLE_ROWS: Final = 16_384


@dataclass(frozen=True)
class Data:
    """A set as this task reads it.

    ``steps`` of an epoch, the same for every worker; ``examples`` that all workers see in one; ``skipped`` rows that
    were bad. The pipeline comes in two forms, see `for_fit` and `per_worker`.
    """

    files: list[Path]
    layout: Layout
    plan: Plan
    task: Task
    skipped: int
    _order: Order
    _content: Content
    _asked: Mapping[str, Any]
    _regular: Regular | None = None

    @property
    def steps(self) -> int:
        """Steps of an epoch: ``steps_per_epoch``."""
        return self.plan.steps

    @property
    def examples(self) -> int:
        """Rows that all workers together see in an epoch."""
        return sum(share.used for share in self.plan.shares)

    @property
    def batch_per_worker(self) -> int:
        """Rows of a step for this worker."""
        return self.plan.shares[self.task.index].batch

    def dataset(self) -> Any:
        """A tf.data.Dataset of this worker's own batches, for a loop of one's own."""
        return self._build(self.plan, self.task)

    def for_fit(self) -> Any:
        """A tf.data.Dataset of GLOBAL batches, for ``fit``, ``evaluate`` and ``experimental_distribute_dataset``.

        Those take the global batch and cut each worker's part out of it. What they get here are rows of this worker
        alone, in batches of the global size: cut up, each step has its part from every worker. Give `fit`
        ``steps_per_epoch=data.steps`` unless `epochs` was given. Raises DataError where the batch is no multiple of
        the workers: then only `per_worker` is exact.
        """
        workers, batch = self.task.workers, self.plan.batch
        if workers == 1:
            return self.dataset()
        if batch % workers:
            raise DataError(
                f"fit cannot cut a global batch of {batch:,} rows into {workers:,} equal parts",
                hint=f"batch={batch // workers * workers or workers:,}, or per_worker(strategy), which takes any",
            )
        from yurt.data.pipeline import joined, options

        own = self.dataset()
        if self._order.epochs is None:
            return joined(own, workers, batch).prefetch(1).with_options(options(workers))
        # An end that fills no whole batch is only understood of a plain batch(), row by row.
        return own.unbatch().batch(batch).prefetch(1).with_options(options(workers))

    def per_worker(self, strategy: Any) -> Any:
        """A distributed dataset of per-worker batches, by ``distribute_datasets_from_function``.

        For custom loops, for `fit` (which leaves a distributed dataset as it is), for the coordinator of a
        parameter-server run through its ``create_per_worker_dataset``, and for batches that are no multiple of the
        workers.
        """
        return strategy.distribute_datasets_from_function(self.from_context)

    def from_context(self, context: Any) -> Any:
        """The dataset of one input pipeline, as ``distribute_datasets_from_function`` asks for it.

        With several replicas in a worker each batch is one replica's. Raises DataError where they cannot be equal.
        """
        task = Task(int(context.num_input_pipelines), int(context.input_pipeline_id))
        its_plan = self.plan
        if task.workers != len(self.plan.shares):
            rows = self._asked["rows"]
            its_plan = plan(
                rows, self.plan.batch, task.workers, by=self._asked["by"], remainder=self._asked["remainder"]
            )
        own = self._build(its_plan, task)
        replicas = int(context.num_replicas_in_sync) // task.workers or 1
        if replicas == 1:
            return own
        if its_plan.shares[task.index].batch % replicas or its_plan.last:
            raise DataError(
                f"a worker's batch of {its_plan.shares[task.index].batch:,} rows cannot be cut for {replicas} replicas"
            )
        return own.rebatch(its_plan.shares[task.index].batch // replicas, drop_remainder=True)

    def again(self, *, epoch: int, step: int = 0) -> Data:
        """The same from a later place: `step` steps into `epoch`, both from 0, as if it had never stopped."""
        return replace(self, _order=replace(self._order, initial_epoch=epoch, initial_step=step))

    def _build(self, its_plan: Plan, task: Task) -> Any:
        from yurt.data.pipeline import build

        return build(self.files, self.layout, its_plan, task.index, self._order, self._content, self._regular)


def read(
    path: Paths,
    *,
    batch: int,
    features: Iterable[str] | None = None,
    transform: Callable[[Any], Any] | None = None,
    pad: Mapping[str, Any] | bool = False,
    shuffle: int | bool = False,
    seed: int = 0,
    epochs: int | None = None,
    initial_epoch: int = 0,
    initial_step: int = 0,
    cache: bool = False,
    remainder: bool = False,
    by: By = "auto",
    workers: int | None = None,
    index: int | None = None,
    schema: Schema | Mapping[str, Described] | None = None,
    compression: str | None = None,
    check: Check = "auto",
    nan: bool = False,
    bad: Bad = "stop",
) -> Data:
    """A set of TFRecord files for this task, checked, divided among the workers, with the same steps for each.

    `path` is a set as it was written (``data/train``), a folder that holds one, a pattern, a file or several.
    `batch` is the GLOBAL batch: rows of one step over all workers. `features` names those that are wanted, `transform`
    is a function of a whole batch (a dict of tensors, rows first) to what the script wants. `pad` fills features of
    variable length up to the longest of a batch: True, or a value by name.

    `shuffle` is True or how many rows may change places; with one `seed` the order is the same on every task and for
    every run, and another in each epoch. `epochs` None repeats without end (training), 1 is for evaluation;
    `remainder` keeps the rows that fill no whole batch. `cache` keeps this worker's batches in memory: later
    epochs change the order of batches, not what is in them. `initial_epoch` and `initial_step` begin later.

    `workers` and `index` are those of TF_CONFIG unless given. `by` says what is divided, see `yurt.data.sharing`.
    Without a schema beside the files `schema` (and `compression`, by the content if left out) says what they hold.

    `check` before training: "full" reads every record this task will read, "quick" looks at sizes and first records,
    "auto" is full up to 256 MiB. `nan` also refuses NaN and infinity (full). `bad` records "stop" with a DataError that
    names file, record and feature, or are left out by "skip", which reads everything first and counts them.
    """
    if check not in ("auto", "full", "quick", "none") or bad not in ("stop", "skip"):
        wrong, known = (
            (check, ("auto", "full", "quick", "none")) if bad in ("stop", "skip") else (bad, ("stop", "skip"))
        )
        raise DataError(f"{wrong!r} is unknown here", hint=guess(str(wrong), known))
    task = _task(workers, index)
    found = find(path)
    layout = _layout(found, schema, compression)
    wanted = layout.schema.only(features) if features is not None else layout.schema
    files, rows, skipped, looked_at = _checked(found, layout, task, batch, by, remainder, check, nan, bad)
    made = plan(rows, batch, task.workers, by=by, remainder=remainder)
    if made.note and task.index == 0:
        print(f"yurt: {found.name}: {made.note}", file=sys.stderr, flush=True)
    order = Order(
        shuffle=_SHUFFLE_ROWS if shuffle is True else int(shuffle),
        seed=seed,
        cache=cache,
        epochs=epochs,
        initial_epoch=initial_epoch,
        initial_step=initial_step,
    )
    content = Content(wanted, pad, transform)
    asked = {"rows": rows, "by": by, "remainder": remainder}
    # Where nothing is to be checked the index is believed, as it is for the numbers of rows.
    alike = regular(files, layout, rows, looked_at, found.stride if check == "none" and bad == "stop" else None)
    return Data(files, layout, made, task, skipped, order, content, asked, alike)


def _task(workers: int | None, index: int | None) -> Task:
    if workers is None and index is None:
        return task_from()
    if workers is None or index is None or not 0 <= index < workers:
        raise DataError("give workers and index both, index from 0", hint="or neither: then TF_CONFIG says it")
    return Task(workers, index)


def _layout(found: Found, schema: Schema | Mapping[str, Described] | None, compression: str | None) -> Layout:
    """The declared layout. A compression that is declared is believed, and found wrong by the check."""
    given = Schema(schema) if schema is not None and not isinstance(schema, Schema) else schema
    if given is not None and found.layout is not None:
        layout = replace(found.layout, schema=given)
    elif given is not None:
        from yurt.data.compression import detect

        layout = Layout(given, detect(found.files[0]) or "none")
    else:
        layout = layout_for(found)
    return layout if compression is None else replace(layout, compression=named(compression))


def _checked(
    found: Found,
    layout: Layout,
    task: Task,
    batch: int,
    by: By,
    remainder: bool,
    check: Check,
    nan: bool,
    bad: Bad,
) -> tuple[list[Path], list[int], int, set[int]]:
    """The files to read, their rows, how many rows were left out as bad, and which files can be known in every byte.

    Raises DataError for faults.
    """
    lost = check_lost(found)
    if bad == "skip":
        reports = [check_file(file, layout, found.index.get(file.name), nan=nan) for file in found.files]
        mended = mend(reports, layout.compression)
        skipped = dict(mended.skipped)
        for fault in lost:
            shard = found.index.get(Path(fault.file).name)
            skipped[Path(fault.file).name] = shard.examples if shard else 1
        tell(found.name, skipped)
        if skipped and task.index == 0:
            told = ", ".join(f"{name} {count:,}" for name, count in skipped.items())
            print(
                f"yurt: {found.name}: skipped {sum(skipped.values()):,} bad rows: {told}", file=sys.stderr, flush=True
            )
        if not mended.files:
            stop([fault for report in reports for fault in report.faults] + lost, found.name)
        return mended.files, mended.rows, sum(skipped.values()), set(range(len(mended.files)))
    stop(lost, found.name)
    indexed = all(file.name in found.index for file in found.files)
    total = sum(file.stat().st_size for file in found.files)
    full = check == "full" or (nan and check != "none") or (check == "auto" and total <= _CHECKED_BYTES)
    rows = [found.index[file.name].examples for file in found.files] if indexed else []
    own = set(range(len(found.files)))
    if rows and task.workers > 1:
        own = set(plan(rows, batch, task.workers, by=by, remainder=remainder).shares[task.index].files)
    faults: list[Fault] = []
    counted = []
    for number, file in enumerate(found.files):
        shard = found.index.get(file.name)
        whole = full and number in own
        if check != "none":
            report = check_file(file, layout, shard, nan=nan and whole, first=None if whole else 1)
            faults += report.faults
            stop(faults, found.name)
            if whole:
                counted.append(report.examples)
                continue
        counted.append(shard.examples if shard else count_examples(file, layout))
    if check == "none":
        own = set(range(len(found.files))) if found.stride else set()
    elif not full:
        own = set()
    return found.files, rows or counted, 0, own
