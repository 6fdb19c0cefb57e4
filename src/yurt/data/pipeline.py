"""The tf.data pipeline of one worker. Imports TensorFlow.

Records are handled in chunks from the file on: anything that TensorFlow does a record costs more than parsing it.
An epoch is a function of its number, which makes the seeds, so a run that is begun again at epoch 5 sees what it
would have seen.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import tensorflow as tf

from yurt.data.compression import tensorflow_name
from yurt.data.index import Layout
from yurt.data.orders import Content, Order
from yurt.data.parsing import padder, parser
from yurt.data.sharing import Plan
from yurt.data.slicing import can_slice, in_one, in_turn, packed_in_turn, slicer
from yurt.data.stride import Regular, Stride

#: Rows that are moved together by a shuffle before they are mixed one by one.
_CHUNK: Final = 16
#: A window of so many batches is put into a new order row by row.
_WINDOW: Final = 8
_FILES_AT_ONCE: Final = 4
_BUFFER_BYTES: Final = 1 << 20
#: Fixed beside the seed, so that tf.random.set_seed does not change the order of data.
_GRAPH_SEED: Final = 2016


def build(
    files: list[Path],
    layout: Layout,
    plan: Plan,
    index: int,
    order: Order,
    content: Content,
    regular: Regular | None = None,
) -> Any:
    """Batches of worker `index`, `plan.shares[index].batch` rows each, `plan.steps` of them an epoch.

    `regular` says which files have a stride; it changes how they are read, not what comes out.
    """
    share = plan.shares[index]
    own = [str(files[number]) for number in share.files]
    alike = regular if regular and set(share.files) <= set(regular.sizes) else None
    maker = _Epochs(own, layout, plan, index, order, content, alike)
    last = 2**62 if order.epochs is None else order.initial_epoch + order.epochs
    epochs = tf.data.Dataset.range(order.initial_epoch, last)
    if order.cache:
        kept = maker.batches(tf.constant(0, tf.int64)).cache()
        dataset = epochs.flat_map(_as_is(lambda epoch: maker.again(kept, epoch)))
    else:
        dataset = epochs.flat_map(_as_is(maker.batches))
    if order.initial_step:
        dataset = dataset.skip(order.initial_step)
    count = -1 if order.epochs is None else order.epochs * plan.steps - order.initial_step
    dataset = dataset.apply(tf.data.experimental.assert_cardinality(count))
    return dataset.prefetch(2).with_options(options(len(plan.shares)))


def options(workers: int) -> Any:
    """What tf.data is told: the files are divided already, orders are kept, and nothing is tuned among several.

    A worker that stood still at the end of `fit` was seen to wait for the tuner's thread; there may be other causes.
    """
    made = tf.data.Options()
    made.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.OFF
    made.deterministic = True
    if workers > 1:
        made.autotune.enabled = False
    return made


def joined(dataset: Any, workers: int, batch: int) -> Any:
    """As many batches as there are workers made one of `batch` rows, for ``fit`` to cut up again.

    Where TensorFlow cuts up what ``rebatch`` has joined it prints "Tensor RefCount not reliable" for each step (2.21),
    so that is left to batches whose shapes are not known.
    """
    specs = tf.nest.flatten(dataset.element_spec)
    if not all(isinstance(spec, tf.TensorSpec) and spec.shape.is_fully_defined() for spec in specs):
        return dataset.rebatch(batch, drop_remainder=True)

    several = type(dataset.element_spec) is tuple  # what map gives as several arguments

    def join(*parts: Any) -> Any:
        whole = tf.nest.map_structure(lambda part: tf.reshape(part, [batch, *part.shape[2:]]), parts)
        return whole if several else whole[0]

    return dataset.batch(workers, drop_remainder=True).map(_as_is(join))


class _Epochs:
    """Makes the batches of one epoch."""

    def __init__(
        self,
        files: list[str],
        layout: Layout,
        plan: Plan,
        index: int,
        order: Order,
        content: Content,
        regular: Regular | None,
    ) -> None:
        self._files, self._layout, self._plan, self._index = files, layout, plan, index
        self._order, self._content = order, content
        self._stride = regular.stride if regular and can_slice(layout, at_least=_CHUNK) else None
        self._parse = parser(layout, content.schema)
        self._share = plan.shares[index]
        if regular and self._stride:
            self._sizes = [regular.sizes[number] for number in self._share.files]
            self._parse = self._slicer(regular)
        # Rows are taken out of records before they are mixed and batched, not after it.
        self._early = self._stride is not None or layout.packed is not None
        # Rows of the stream that are one step: the worker's own, or everybody's, of which it keeps a slice.
        self._step = plan.batch if plan.by == "elements" else self._share.batch
        self._window = max(1, min(_WINDOW * self._step, max(order.shuffle, self._step)))
        self._parallel = max(1, min(4, len(os.sched_getaffinity(0)))) if hasattr(os, "sched_getaffinity") else 2

    def _slicer(self, regular: Regular) -> Callable[[Any], Any]:
        frames = _CHUNK if self._layout.packed is None else 1
        # Only a shuffle brings the short ends of files together with other stretches.
        self._ends = any(size % (frames * regular.stride.bytes) for size in self._sizes)
        mixed = self._ends and self._order.shuffle > 0
        return slicer(regular, self._layout, self._content.schema, mixed=mixed)

    def batches(self, epoch: Any) -> Any:
        """All batches of an epoch, in its order."""
        _own_seed()
        rows = self._chunks(epoch) if self._stride is None else self._stretches(epoch, self._stride)
        if self._early:
            rows = rows.map(_as_is(self._parse), num_parallel_calls=self._parallel)
        if self._order.shuffle:
            rows = self._permuted(rows, epoch)
        if self._order.shuffle or self._early:  # else they come in the right number
            rows = rows.rebatch(self._step, drop_remainder=not self._plan.last)
        steps = rows.take(self._plan.steps)
        if self._plan.last or self._plan.by == "elements":
            steps = steps.enumerate().map(_as_is(self._slice))
        steps = steps.map(_as_is(self._finish), num_parallel_calls=self._parallel)
        if self._content.transform is None:
            return steps
        return steps.map(self._content.transform, num_parallel_calls=self._parallel)

    def again(self, kept: Any, epoch: Any) -> Any:
        """Batches that are kept in memory, in another order each epoch if there is a shuffle."""
        _own_seed()
        if not self._order.shuffle or self._plan.last:
            return kept
        return kept.shuffle(self._plan.steps, seed=self._seed(epoch, 3), reshuffle_each_iteration=False)

    def _chunks(self, epoch: Any) -> Any:
        """Records in chunks: without a shuffle file after file, with one of several files in turn, and chunks mixed."""
        kind, rows_a_record = tensorflow_name(self._layout.compression), self._layout.packed or 1
        if not self._order.shuffle:
            return tf.data.TFRecordDataset(self._files, kind, _BUFFER_BYTES).batch(max(1, self._step // rows_a_record))
        chunk = max(1, _CHUNK // rows_a_record)
        names = tf.constant(self._files)
        return self._mixed(epoch, lambda file: tf.data.TFRecordDataset(names[file], kind, _BUFFER_BYTES).batch(chunk))

    def _stretches(self, epoch: Any, stride: Stride) -> Any:
        """The same chunks of the same records in the same order, as strings of frames."""
        packed = self._layout.packed
        if not self._order.shuffle:
            if packed is None:
                return in_turn(self._files, self._sizes, stride, self._step)
            return packed_in_turn(self._files, self._sizes, stride, max(1, self._step // packed))
        chunk = 1 if packed else _CHUNK
        names, sizes = tf.constant(self._files), tf.constant(self._sizes, tf.int64)
        mixed = self._mixed(epoch, lambda file: in_one(names[file], sizes[file], stride, chunk))
        # A window in one go need not be cut again. Packed records with fewer rows have to be parsed: few with each.
        rows = self._step if packed and self._ends else self._window
        return mixed.batch(max(1, rows // (packed or chunk)))

    def _mixed(self, epoch: Any, chunks_of: Callable[[Any], Any]) -> Any:
        """Chunks of several files (by number) in turn, then mixed among as many rows as may change places."""
        order = _permutation(len(self._files), self._seed(epoch, 0), 0)
        at_once = min(_FILES_AT_ONCE, len(self._files))
        chunks = tf.data.Dataset.from_tensor_slices(order).interleave(
            _as_is(chunks_of), cycle_length=at_once, num_parallel_calls=min(self._parallel, at_once)
        )
        rows_a_record = self._layout.packed or 1
        buffer = max(2, self._order.shuffle // (max(1, _CHUNK // rows_a_record) * rows_a_record))
        return chunks.shuffle(buffer, seed=self._seed(epoch, 1), reshuffle_each_iteration=False)

    def _permuted(self, rows: Any, epoch: Any) -> Any:
        """Rows in windows of some batches, each window in a new order."""
        seed = self._seed(epoch, 2)

        def mix(number: Any, values: Any) -> Any:
            order = _permutation(_rows(values), seed, number)
            return tf.nest.map_structure(lambda value: tf.gather(value, order), values)

        return rows.rebatch(self._window).enumerate().map(_as_is(mix), num_parallel_calls=self._parallel)

    def _slice(self, number: Any, values: Any) -> Any:
        """This worker's rows of a step."""
        sizes = [share.batch for share in self._plan.shares]
        first = sum(sizes[: self._index]) if self._plan.by == "elements" else 0
        at, size = tf.constant(first), tf.constant(self._share.batch)
        if self._plan.last:
            whole = number < self._plan.full_steps
            last_at = self._index * self._plan.last if self._plan.by == "elements" else 0
            at, size = tf.where(whole, at, last_at), tf.where(whole, size, self._plan.last)
        return tf.nest.map_structure(lambda value: value[at : at + size], values)

    def _finish(self, values: Any) -> Any:
        """A batch as the script gets it."""
        batch = values if self._early else self._parse(values)
        if not self._plan.last:
            batch = {name: _sized(value, self._share.batch) for name, value in batch.items()}
        if self._content.pad:
            batch = padder(self._content.schema, self._content.pad)(batch)
        return batch

    def _seed(self, epoch: Any, use: int) -> Any:
        """A number of its own for each seed, epoch and use."""
        return (tf.constant(self._order.seed * 4 + use, tf.int64) * 1_000_003 + epoch) % (2**31 - 1)


def _as_is(function: Callable[..., Any]) -> Callable[..., Any]:
    """These functions are made of operations; there is nothing for AutoGraph to rewrite, and it takes its time."""
    made: Callable[..., Any] = tf.autograph.experimental.do_not_convert(function)
    return made


def _own_seed() -> None:
    """Inside a tf.data function: its graph's seed, which is else that of tf.random.set_seed."""
    if not tf.executing_eagerly():
        tf.compat.v1.set_random_seed(_GRAPH_SEED)


def _permutation(count: Any, seed: Any, number: Any) -> Any:
    pair = tf.stack([tf.cast(seed, tf.int64), tf.cast(number, tf.int64)])
    return tf.random.experimental.stateless_shuffle(tf.range(count), seed=pair)


def _rows(values: Any) -> Any:
    first = next(iter(values.values())) if isinstance(values, dict) else values
    return first.nrows() if isinstance(first, tf.RaggedTensor) else tf.shape(first)[0]


def _sized(value: Any, rows: int) -> Any:
    """Tell the graph how many rows there are; a whole batch has always as many."""
    if isinstance(value, tf.RaggedTensor):
        return value
    value.set_shape([rows, *value.shape[1:]])
    return value
