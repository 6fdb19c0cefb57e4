"""Records parsed a whole batch at a time, as TensorFlow operations. Imports TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

from yurt.data.index import Layout
from yurt.data.schema import BYTES, FLOATS, INTS, LENGTHS, Feature, Schema

Batch = dict[str, Any]
_WIRE = {BYTES: tf.string, FLOATS: tf.float32, INTS: tf.int64}
#: TensorFlow decodes no unsigned 32 and 64 bits: they are read as signed and the bits taken as they are.
_SIGNED = {"uint32": tf.int32, "uint64": tf.int64}


def parser(layout: Layout, schema: Schema, *, mixed: bool = False) -> Callable[[Any], Batch]:
    """A function of records (strings, shape (n,)) that gives the features of `schema`, rows along the first axis.

    One row a record: n rows; packed: as many as they hold. Fixed features are tensors (rows, *shape), those of
    variable length RaggedTensors. `mixed` says that packed records with fewer rows are among them: known before, that
    saves a branch, which takes longer to set up than to run.
    """
    return _packed(schema, mixed=mixed) if layout.packed is not None else _plain(schema)


def padder(schema: Schema, pad: Mapping[str, Any] | bool) -> Callable[[Batch], Batch]:
    """A function that fills up features of variable length to the longest of the batch."""
    values = dict.fromkeys(schema) if pad is True else dict(pad or {})

    def fill(batch: Batch) -> Batch:
        return {
            name: value.to_tensor(default_value=values[name]) if name in values and schema[name].variable else value
            for name, value in batch.items()
        }

    return fill


def _plain(schema: Schema) -> Callable[[Any], Batch]:
    wanted = {name: _spec(feature) for name, feature in schema.items()}

    def parse(records: Any) -> Batch:
        found = tf.io.parse_example(records, wanted)
        return {name: _shaped(feature, found[name]) for name, feature in schema.items()}

    return parse


def _spec(feature: Feature) -> Any:
    if feature.stored == "raw":
        return tf.io.FixedLenFeature((), tf.string)
    if feature.variable:
        return tf.io.RaggedFeature(_WIRE[feature.kind])
    return tf.io.FixedLenFeature(feature.shape, _WIRE[feature.kind])


def _shaped(feature: Feature, value: Any) -> Any:
    """From what parse_example gives to the feature's dtype and shape."""
    if feature.stored == "raw" and feature.variable:
        rows = tf.strings.length(value) // (feature.size * feature.numpy.itemsize)
        flat = tf.reshape(_numbers(feature, tf.strings.reduce_join(value)), (-1, *feature.row_shape))
        return tf.RaggedTensor.from_row_lengths(flat, rows, validate=False)
    if feature.stored == "raw":
        return tf.reshape(_numbers(feature, value), (-1, *feature.row_shape))
    if not feature.variable:
        return cast(feature, value)
    flat = cast(feature, value.flat_values)
    if feature.size == 1 and not feature.row_shape:
        return value.with_flat_values(flat)
    flat = tf.reshape(flat, (-1, *feature.row_shape))
    return tf.RaggedTensor.from_row_splits(flat, value.row_splits // feature.size, validate=False)


def _packed(schema: Schema, *, mixed: bool) -> Callable[[Any], Batch]:
    wanted: dict[str, Any] = {}
    for name, feature in schema.items():
        strings = feature.dtype == "string"
        wanted[name] = tf.io.RaggedFeature(tf.string) if strings else tf.io.FixedLenFeature((), tf.string)
        if feature.variable:
            wanted[name + LENGTHS] = tf.io.FixedLenFeature((), tf.string)

    joined = _as_one if mixed else _joined

    def parse(records: Any) -> Batch:
        found = tf.io.parse_example(records, wanted)
        batch = {}
        for name, feature in schema.items():
            value = found[name]
            flat = value.flat_values if feature.dtype == "string" else _numbers(feature, joined(value))
            rows = tf.reshape(flat, (-1, *feature.row_shape))
            if feature.variable:
                lengths = tf.io.decode_raw(tf.strings.reduce_join(found[name + LENGTHS]), tf.int32)
                rows = tf.RaggedTensor.from_row_lengths(rows, lengths, validate=False)
            batch[name] = rows
        return batch

    return parse


def _joined(strings: Any) -> Any:
    """Strings of one length as they are, which saves a copy; of several lengths as one string."""
    lengths = tf.strings.length(strings)
    alike = tf.reduce_all(lengths == lengths[0])
    return tf.cond(alike, lambda: strings, lambda: _as_one(strings))


def _as_one(strings: Any) -> Any:
    return tf.reshape(tf.strings.reduce_join(strings), (1,))


def _numbers(feature: Feature, strings: Any) -> Any:
    """The arrays in strings, little-endian."""
    dtype = tf.as_dtype(feature.dtype)
    if feature.dtype in _SIGNED:
        return tf.bitcast(tf.io.decode_raw(strings, _SIGNED[feature.dtype]), dtype)
    return tf.io.decode_raw(strings, dtype)


def cast(feature: Feature, value: Any) -> Any:
    """From the dtype of a list in a tf.train.Example to the feature's own."""
    dtype = tf.as_dtype(feature.dtype)
    return value if value.dtype == dtype else tf.cast(value, dtype)
