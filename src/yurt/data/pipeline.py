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

#: Rows that are moved together by a shuffle before they are mixed one by one.
_CHUNK: Final = 16
#: A window of so many batches is put into a new order row by row.
_WINDOW: Final = 8
_FILES_AT_ONCE: Final = 4
_BUFFER_BYTES: Final = 1 << 20
#: Fixed beside the seed, so that tf.random.set_seed does not change the order of data.
_GRAPH_SEED: Final = 2016


def build(files: list[Path], layout: Layout, plan: Plan, index: int, order: Order, content: Content) -> Any:
    """Batches of worker `index`, `plan.shares[index].batch` rows each, `plan.steps` of them an epoch."""
    share = plan.shares[index]
    own = [str(files[number]) for number in share.files]
    maker = _Epochs(own, layout, plan, index, order, content)
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


class _Epochs:
    """Makes the batches of one epoch."""

    def __init__(
        self, files: list[str], layout: Layout, plan: Plan, index: int, order: Order, content: Content
    ) -> None:
        self._files, self._layout, self._plan, self._index = files, layout, plan, index
        self._order, self._content = order, content
        self._parse = parser(layout, content.schema)
        self._share = plan.shares[index]
        # Rows of the stream that are one step: the worker's own, or everybody's, of which it keeps a slice.
        self._step = plan.batch if plan.by == "elements" else self._share.batch
        self._parallel = max(1, min(4, len(os.sched_getaffinity(0)))) if hasattr(os, "sched_getaffinity") else 2

    def batches(self, epoch: Any) -> Any:
        """All batches of an epoch, in its order."""
        _own_seed()
        rows = self._chunks(epoch)
        if self._layout.packed is not None:
            rows = rows.map(_as_is(self._parse), num_parallel_calls=self._parallel)
        if self._order.shuffle:
            rows = self._permuted(rows, epoch)
        if self._order.shuffle or self._layout.packed is not None:  # else they come in the right number
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
        names = tf.constant(self._files)
        if not self._order.shuffle:
            return tf.data.TFRecordDataset(names, kind, _BUFFER_BYTES).batch(max(1, self._step // rows_a_record))
        names = tf.gather(names, _permutation(len(self._files), self._seed(epoch, 0), 0))
        chunk, at_once = max(1, _CHUNK // rows_a_record), min(_FILES_AT_ONCE, len(self._files))
        chunks = tf.data.Dataset.from_tensor_slices(names).interleave(
            _as_is(lambda name: tf.data.TFRecordDataset(name, kind, _BUFFER_BYTES).batch(chunk)),
            cycle_length=at_once,
            num_parallel_calls=min(self._parallel, at_once),
        )
        buffer = max(2, self._order.shuffle // (chunk * rows_a_record))
        return chunks.shuffle(buffer, seed=self._seed(epoch, 1), reshuffle_each_iteration=False)

    def _permuted(self, rows: Any, epoch: Any) -> Any:
        """Rows in windows of some batches, each window in a new order."""
        window = max(1, min(_WINDOW * self._step, max(self._order.shuffle, self._step)))
        seed = self._seed(epoch, 2)

        def mix(number: Any, values: Any) -> Any:
            order = _permutation(_rows(values), seed, number)
            return tf.nest.map_structure(lambda value: tf.gather(value, order), values)

        return rows.rebatch(window).enumerate().map(_as_is(mix), num_parallel_calls=self._parallel)

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
        batch = values if self._layout.packed is not None else self._parse(values)
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
