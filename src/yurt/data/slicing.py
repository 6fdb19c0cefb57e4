"""Files whose records are all alike, read in stretches of frames and cut into columns. Imports TensorFlow.

Nothing happens a record: a stretch is one string, its bytes are seen as a matrix of frames, and a feature is some
columns of it. See `yurt.data.stride`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
import tensorflow as tf

from yurt.data.framing import FRAME_BYTES, HEADER_BYTES, header
from yurt.data.index import Layout
from yurt.data.parsing import Batch, cast, parser
from yurt.data.schema import INTS, Feature, Schema
from yurt.data.stride import Regular, Stride

#: Large enough for a disk, small enough for the processor's cache, which the bytes are copied through.
_BUFFER_BYTES: Final = 1 << 18
_LENGTH_BYTES: Final = 8
_CHANGED: Final = (
    "a record does not begin where it should: a file of yurt.data.read is not as it was when it was checked, or when "
    "its index was written. `yurt data check` says which one"
)


def can_slice(layout: Layout, *, at_least: int) -> bool:
    """Whether records with a stride are read so: packed ones only if one of them has `at_least` so many rows."""
    return sys.byteorder == "little" and (layout.packed is None or layout.packed >= at_least)


def in_turn(files: Sequence[str], sizes: Sequence[int], stride: Stride, frames: int) -> Any:
    """Stretches of `frames` frames of file after file, as strings.

    At the seams they are cut so that a stretch which ends with its file and the next one make `frames` together.
    """
    table = []
    ahead = 0
    for file, size in zip(files, sizes, strict=True):
        count = size // stride.bytes
        first = min(count, ahead)
        whole, last = divmod(count - first, frames)
        at = 0
        for length, times in ((first, 1), (frames, whole), (last, 1)):
            if length and times:
                until = at + length * times * stride.bytes
                table.append((file, length * stride.bytes, at, size - until))
                at = until
        ahead = (ahead - count) % frames
    return _table(table).flat_map(_stretches)


def packed_in_turn(files: Sequence[str], sizes: Sequence[int], stride: Stride, frames: int) -> Any:
    """Up to `frames` packed records of file after file, as strings of one length, shape (n,)."""
    table = []
    for file, size in zip(files, sizes, strict=True):
        at = size // stride.bytes * stride.bytes
        if at:
            table.append((file, stride.bytes, 0, size - at))
        if at < size:
            table.append((file, size - at, at, 0))
    return _table(table).flat_map(lambda *piece: _stretches(*piece).batch(frames))


def _table(rows: list[tuple[str, int, int, int]]) -> Any:
    names, *numbers = zip(*rows, strict=True)
    return tf.data.Dataset.from_tensor_slices((list(names), *(np.array(column, np.int64) for column in numbers)))


def in_one(file: Any, size: Any, stride: Stride, frames: int) -> Any:
    """Stretches of `frames` frames of one file, the last with what is left. `file` and `size` are tensors."""
    stretch = tf.constant(frames * stride.bytes, tf.int64)
    whole = size // stretch * stretch
    return _stretches(file, stretch, tf.constant(0, tf.int64), size - whole).concatenate(
        _stretches(file, tf.maximum(size - whole, 1), whole, tf.constant(0, tf.int64))
    )


def _stretches(file: Any, size: Any, before: Any, after: Any) -> Any:
    """What tf.data.FixedLengthRecordDataset gives, without the function that it puts around each file."""
    made = tf.raw_ops.FixedLengthRecordDatasetV2(
        filenames=file,
        header_bytes=before,
        record_bytes=size,
        footer_bytes=after,
        buffer_size=_BUFFER_BYTES,
        compression_type="",
    )
    return tf.data.experimental.from_variant(made, tf.TensorSpec((), tf.string))


def slicer(regular: Regular, layout: Layout, schema: Schema, *, mixed: bool) -> Callable[[Any], Batch]:
    """A function of stretches (a string, or several of shape (n,)) that gives the features of `schema`.

    It gives what `yurt.data.parsing.parser` gives for the same records. `mixed` says that strings of several lengths
    may come together. Where the bytes are not frames of this stride the dataset fails, and says so.
    """
    stride, packed = regular.stride, layout.packed
    head = tf.constant(np.frombuffer(header(stride.bytes - FRAME_BYTES), np.uint8))

    def columns(flat: Any) -> Batch:
        frames = tf.reshape(flat, (-1, stride.bytes))
        frames = _if(tf.reduce_all(tf.slice(frames, (0, 0), (-1, HEADER_BYTES)) == head), frames)
        return {name: _column(feature, frames, *stride.spans[name], packed) for name, feature in schema.items()}

    def together(strings: Any) -> Any:
        return tf.reshape(tf.io.decode_raw(strings, tf.uint8), (-1,))

    if packed is not None and mixed:
        parse = parser(layout, schema, mixed=True)
        return lambda strings: tf.cond(
            tf.reduce_all(tf.strings.length(strings) == stride.bytes),
            lambda: columns(together(strings)),
            lambda: parse(_records(strings)),
        )
    if packed is not None and regular.ends:
        return _of_one_size([stride, *regular.ends], packed, schema)
    if mixed:
        return lambda strings: columns(
            tf.cond(_alike(strings), lambda: together(strings), lambda: together(tf.strings.reduce_join(strings)))
        )
    return lambda strings: columns(together(strings))


def _of_one_size(strides: Sequence[Stride], packed: int, schema: Schema) -> Callable[[Any], Batch]:
    """For packed records that are all of one of these strides: where the columns lie is looked up."""
    sizes = tf.constant([stride.bytes for stride in strides])
    spans = {name: tf.constant([stride.spans[name] for stride in strides]) for name in schema}

    def columns(strings: Any) -> Batch:
        size = tf.strings.length(strings)[0]
        frames = tf.reshape(tf.io.decode_raw(strings, tf.uint8), tf.stack([-1, size]))
        told = tf.bitcast(tf.slice(frames, (0, 0), (-1, _LENGTH_BYTES)), tf.int64)
        frames = _if(tf.reduce_all(told == tf.cast(size - FRAME_BYTES, tf.int64)), frames)
        which = tf.argmax(sizes == size)
        return {
            name: _column(feature, frames, spans[name][which, 0], spans[name][which, 1], packed)
            for name, feature in schema.items()
        }

    return columns


def _records(strings: Any) -> Any:
    """The records in frames, each a string of its own."""
    sizes = tf.strings.length(strings) - FRAME_BYTES
    told = tf.io.decode_raw(tf.strings.substr(strings, 0, _LENGTH_BYTES), tf.int64)[:, 0]
    strings = _if(tf.reduce_all(told == tf.cast(sizes, tf.int64)), strings)
    return tf.strings.substr(strings, tf.fill(tf.shape(sizes), HEADER_BYTES), sizes)


def _if(right: Any, value: Any) -> Any:
    """The value, if what it was taken for is right."""
    with tf.control_dependencies([tf.debugging.Assert(right, [_CHANGED])]):
        return tf.identity(value)


def _alike(strings: Any) -> Any:
    lengths = tf.strings.length(strings)
    return tf.reduce_all(lengths == lengths[0])


def _column(feature: Feature, frames: Any, at: Any, size: Any, packed: int | None) -> Any:
    """A feature of all frames: some columns of their bytes, as its dtype and shape."""
    cut = tf.slice(frames, (0, at), (-1, size))
    if packed is None and feature.kind == INTS:
        return cast(feature, _numbers(tf.reshape(cut, (-1, *feature.row_shape, size // feature.size))))
    if packed is None and feature.stored == "list":
        floats = tf.bitcast(tf.reshape(cut, (-1, *feature.row_shape, 4)), tf.float32)
        return cast(feature, floats)
    bytes_each = feature.numpy.itemsize
    if feature.dtype == "bool":
        return tf.cast(tf.reshape(cut, (-1, *feature.row_shape)), tf.bool)
    shape = (-1, *feature.row_shape, bytes_each) if bytes_each > 1 else (-1, *feature.row_shape)
    return tf.bitcast(tf.reshape(cut, shape), tf.as_dtype(feature.dtype))


def _numbers(varints: Any) -> Any:
    """Varints along the last axis as int64: seven bits a byte, the lowest first."""
    width = varints.shape[-1]
    if width == 1:
        return tf.cast(varints[..., 0], tf.int64)
    digits = tf.cast(tf.bitwise.bitwise_and(varints, np.uint8(0x7F)), tf.int64)
    places = tf.constant(7 * np.arange(width), tf.int64)
    return tf.reduce_sum(tf.bitwise.left_shift(digits, places), -1)
