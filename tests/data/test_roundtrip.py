"""Against TensorFlow's own reader and writer, in both directions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.data.samples import columns, every_feature, same
from yurt.data import check, inspect, read, write
from yurt.data.columns import conform
from yurt.data.encoding import encode
from yurt.data.schema import BYTES, FLOATS, Schema

pytestmark = pytest.mark.tensorflow

COMPRESSIONS = ["none", "gzip", "zlib"]
ROWS = 11


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def example(tf, schema, given, row) -> bytes:
    """As a person writes it by hand with TensorFlow."""
    made = {}
    for name, feature in schema.items():
        value = given[name][row]
        if feature.stored == "raw":
            made[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=[np.asarray(value).tobytes()]))
        elif feature.kind == BYTES:
            flat = [value] if isinstance(value, bytes) else np.ravel(value).tolist()
            made[name] = tf.train.Feature(bytes_list=tf.train.BytesList(value=flat))
        elif feature.kind == FLOATS:
            made[name] = tf.train.Feature(float_list=tf.train.FloatList(value=np.ravel(value).astype(float)))
        else:
            made[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=[int(x) for x in np.ravel(value)]))
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString(deterministic=True)


def test_the_bytes_are_those_of_protobuf(tf):
    schema = every_feature()
    given = columns(schema, ROWS)
    ours = encode(schema, *conform(schema, given))
    for row in range(ROWS):
        theirs = example(tf, schema, given, row)
        assert len(ours[row]) == len(theirs)
        assert tf.train.Example.FromString(ours[row]) == tf.train.Example.FromString(theirs)


def test_the_order_too_where_no_name_begins_another(tf):
    # Where one does, protobuf's implementations do not agree with each other.
    schema = Schema({"b": ("float32", (3,)), "a": "int64", "c": "string"})
    given = columns(schema, ROWS)
    ours = encode(schema, *conform(schema, given))
    assert ours == [example(tf, schema, given, row) for row in range(ROWS)]


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_tensorflow_reads_the_same_bytes_of_a_file(tf, tmp_path, compression):
    schema = every_feature()
    given = columns(schema, ROWS)
    written = write(tmp_path / "set", given, schema=schema, shards=2, compression=compression)
    files = [str(tmp_path / shard.name) for shard in written.shards]
    kind = "" if compression == "none" else compression.upper()
    found = list(tf.data.TFRecordDataset(files, compression_type=kind).as_numpy_iterator())
    assert found == encode(schema, *conform(schema, given))


@pytest.mark.parametrize(
    ("compression", "packed"),
    [("none", None), ("none", 1), ("none", 4), ("none", 64), ("gzip", None), ("zlib", None), ("gzip", 4), ("zlib", 4)],
)
def test_every_feature_through_our_pipeline(tf, tmp_path, compression, packed):
    schema = every_feature()
    given = columns(schema, ROWS)
    write(tmp_path / "set", given, schema=schema, shards=2, compression=compression, packed=packed)
    seen = 0
    for batch in read(tmp_path / "set", batch=4, epochs=1, remainder=True).dataset():
        for at in range(len(batch["int64_scalar"])):
            for name, feature in schema.items():
                value = batch[name][at]
                value = value.numpy() if hasattr(value, "numpy") else value
                assert same(value, given[name][seen]), name
                assert batch[name].dtype == tf.as_dtype(feature.dtype)
            seen += 1
    assert seen == ROWS


@pytest.mark.parametrize("compression", COMPRESSIONS)
def test_what_tensorflow_writes_is_good(tf, tmp_path, compression):
    schema = every_feature()
    given = columns(schema, ROWS)
    kind = "" if compression == "none" else compression.upper()
    with tf.io.TFRecordWriter(str(tmp_path / "mine.tfrecord"), kind) as writer:
        for row in range(ROWS):
            writer.write(example(tf, schema, given, row))
    seen = list(read(tmp_path, schema=schema, batch=ROWS, epochs=1).dataset())
    assert len(seen) == 1
    for name in schema:
        for row in range(ROWS):
            value = seen[0][name][row]
            assert same(value.numpy() if hasattr(value, "numpy") else value, given[name][row]), name


def test_padding_and_a_function_of_the_batch(tf, tmp_path):
    write(
        tmp_path / "set",
        {"x": [[1, 2], [], [3]], "y": [1.0, 2.0, 3.0]},
        schema={"x": ("int64", (None,)), "y": "float32"},
        shards=1,
    )
    made = read(tmp_path / "set", batch=3, epochs=1, pad={"x": -1}, transform=lambda rows: (rows["x"], rows["y"]))
    ((x, y),) = made.dataset().as_numpy_iterator()
    assert x.tolist() == [[1, 2], [-1, -1], [3, -1]]
    assert y.tolist() == [1.0, 2.0, 3.0]
    ((only,),) = [tuple(b.values()) for b in read(tmp_path / "set", batch=3, epochs=1, features=["y"]).dataset()]
    assert only.numpy().tolist() == [1.0, 2.0, 3.0]


def test_a_schema_is_guessed_for_files_of_others(tf, tmp_path):
    schema = Schema({"x": ("float32", (4,)), "label": "int64", "tokens": ("int64", (None,)), "name": "string"})
    given = columns(schema, ROWS)
    with tf.io.TFRecordWriter(str(tmp_path / "mine.tfrecord")) as writer:
        for row in range(ROWS):
            writer.write(example(tf, schema, given, row))
    found = inspect(tmp_path)
    assert found.guessed
    assert dict(found.layout.schema) == dict(schema)
    assert check(tmp_path).ok
