"""Records that are all alike are read without parsing them: the same batches come out, or an error."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from tests.data.samples import NUMBERS, columns, values
from yurt.data import read, write
from yurt.data.index import load_stride
from yurt.data.schema import Feature, Schema

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def fixed_features() -> Schema:
    """Every dtype of numbers as scalar and array, as its list and as bytes, where these do not vary in length."""
    features = {}
    for dtype in NUMBERS:
        features[f"{dtype}_raw"] = Feature(dtype, (2, 3), "raw")
        features[f"{dtype}_one"] = Feature(dtype, (), "raw")
        if dtype.startswith("float") and dtype != "float64":
            features[f"{dtype}_list"] = Feature(dtype, (3,), "list")
        elif dtype not in ("float64", "uint64"):
            features[f"{dtype}_list"] = Feature(dtype, (2,), "list")
            features[f"{dtype}_label"] = Feature(dtype)
    return Schema(features)


def fixed_columns(rows: int) -> dict:
    """Whole numbers of one length each as varints: 1, 2, 5 and 10 bytes."""
    rng = np.random.default_rng(1)
    schema = fixed_features()
    made = columns(schema, rows)
    for name, feature in schema.items():
        if feature.stored == "list" and feature.numpy.kind in "iu":
            low, high = {
                "int8": (0, 128),
                "uint8": (128, 256),
                "int32": (-(2**31), 0),
                "int64": (2**28, 2**35),
            }.get(feature.dtype, (128, 2**14))
            made[name] = rng.integers(low, high, (rows, *feature.row_shape)).astype(feature.dtype)
    return made


def both(path, **options) -> tuple[list, list]:
    """What is read from slices, and what from records, as (batches, specs)."""
    sliced = read(path, **{"workers": 1, "index": 0, **options})
    assert sliced._regular is not None, "this set has no stride"
    parsed = replace(sliced, _regular=None)
    return [[data.dataset(), data.dataset().element_spec] for data in (sliced, parsed)]


def assert_same(tf, path, steps: int | None = None, **options) -> int:
    (sliced, spec), (parsed, other_spec) = both(path, **options)
    assert spec == other_spec
    if steps:
        sliced, parsed = sliced.take(steps), parsed.take(steps)
    count = 0
    for one, other in zip(sliced, parsed, strict=True):
        assert list(one) == list(other)
        for name in one:
            assert one[name].dtype == other[name].dtype
            a, b = one[name].numpy(), other[name].numpy()
            assert a.shape == b.shape
            assert a.tobytes() == b.tobytes(), name
        count += 1
    return count


@pytest.mark.parametrize("packed", [None, 16])
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_dtype(tf, tmp_path, packed, shuffle):
    write(tmp_path / "set", fixed_columns(75), schema=fixed_features(), shards=3, packed=packed)
    assert load_stride(tmp_path / "set.index.json") is not None
    count = assert_same(tf, tmp_path / "set", batch=7, epochs=2, shuffle=shuffle, seed=4)
    assert count == 20


@pytest.fixture(scope="module")
def sets(tmp_path_factory):
    """Rows that fill their files evenly, and some that do not; plain and packed."""
    folder = tmp_path_factory.mktemp("sets")
    for rows in (96, 203):
        for packed in (None, 16):
            given = {"x": np.arange(rows), "label": np.arange(rows) % 100}
            schema = {"x": Feature("int64", (), "raw"), "label": "int64"}
            write(folder / f"{rows}-{packed}", given, schema=schema, shards=3, packed=packed)
    return folder


ASKED = [
    {"batch": 10, "epochs": 1, "remainder": True},
    {"batch": 10, "epochs": 1, "remainder": True, "shuffle": True},
    {"batch": 16, "epochs": 3, "shuffle": 40, "seed": 9},
    {"batch": 10, "epochs": 2, "by": "elements", "workers": 2, "index": 1, "shuffle": True},
    {"batch": 10, "epochs": 2, "by": "elements", "workers": 3, "index": 2},
    {"batch": 9, "epochs": 2, "by": "files", "workers": 2, "index": 1, "shuffle": True},
    {"batch": 9, "epochs": 1, "by": "files", "workers": 2, "index": 0, "remainder": True},
    {"batch": 10, "initial_epoch": 3, "initial_step": 4, "shuffle": True, "steps": 14},
    {"batch": 10, "epochs": 3, "shuffle": True, "cache": True},
    {"batch": 96, "epochs": 2},
    {"batch": 10, "epochs": 1, "features": ["label"], "check": "none"},
]


@pytest.mark.parametrize("options", ASKED, ids=str)
def test_the_same_batches_for_the_same_plan(tf, sets, options):
    for rows in (96, 203):
        for packed in (None, 16):
            assert assert_same(tf, sets / f"{rows}-{packed}", **options) > 0


def test_any_rows_files_and_batches(tf, tmp_path):
    rng = np.random.default_rng(5)
    for number in range(8):
        rows, shards, batch = (int(n) for n in (rng.integers(20, 120), rng.integers(1, 6), rng.integers(1, 20)))
        dtypes = rng.choice(["float32", "float64", "uint8", "bool", "float16", "uint32"], 3)
        shapes = [tuple(rng.integers(1, 5, rng.integers(0, 3)).tolist()) for _ in dtypes]
        schema = {f"f{at}": Feature(str(d), shape, "raw" if d == "uint32" else None) for at, (d, shape) in
                  enumerate(zip(dtypes, shapes, strict=True))}  # fmt: skip
        given = {name: values(feature.dtype, (rows, *feature.row_shape), rng) for name, feature in schema.items()}
        for name, feature in schema.items():
            if feature.stored == "list" and feature.numpy.kind == "u":
                given[name] %= 128
        packed = [None, 16, 24][number % 3]
        if packed and rows // shards < packed:
            continue
        path = tmp_path / f"set{number}"
        write(path, given, schema=schema, shards=shards, packed=packed)
        assert_same(tf, path, batch=batch, epochs=2, shuffle=bool(rng.integers(0, 2)), seed=number)


def test_files_of_others_are_sliced_too_if_all_records_were_looked_at(tf, tmp_path):
    with tf.io.TFRecordWriter(str(tmp_path / "mine.tfrecord")) as writer:
        for row in range(40):
            floats = tf.train.Feature(float_list=tf.train.FloatList(value=[row, row / 3]))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"x": floats})).SerializeToString())
    assert_same(tf, tmp_path / "mine.tfrecord", schema={"x": ("float32", (2,))}, batch=8, epochs=1)
    quick = read(tmp_path / "mine.tfrecord", schema={"x": ("float32", (2,))}, batch=8, check="quick")
    assert quick._regular is None


@pytest.mark.parametrize(
    ("given", "schema", "options"),
    [
        ({"x": np.arange(200)}, None, {}),  # varints of one byte and of two
        ({"x": np.tile([[300, 300], [5, 20_000]], (50, 1))}, None, {}),  # four bytes a row, not at one place
        ({"x": ["a"] * 50}, None, {}),
        ({"x": [[1.0]] * 50}, {"x": ("float32", (None,))}, {}),
        ({"x": np.zeros(50)}, None, {"compression": "gzip"}),
        ({"x": np.zeros(50)}, None, {"packed": 100}),
    ],
    ids=["varints", "places", "strings", "lists", "compressed", "no whole record"],
)
def test_what_is_not_all_alike_is_parsed(tf, tmp_path, given, schema, options):
    write(tmp_path / "set", given, schema=schema, shards=2, **options)
    assert load_stride(tmp_path / "set.index.json") is None
    data = read(tmp_path / "set", batch=10, epochs=1)
    assert data._regular is None
    assert len(list(data.dataset())) == data.steps


def test_the_index_is_only_believed_if_nothing_is_to_be_checked(tf, tmp_path):
    write(tmp_path / "set", {"x": np.zeros((40, 3), "f4"), "y": np.zeros(40, "f4")}, shards=2)
    index = tmp_path / "set.index.json"
    told = json.loads(index.read_text())
    assert told["stride"]["spans"].keys() == {"x", "y"}
    x, y = told["stride"]["spans"]["x"], told["stride"]["spans"]["y"]
    index.write_text(json.dumps({**told, "stride": {**told["stride"], "spans": {"x": [x[0] - 1, x[1]], "y": y}}}))
    assert read(tmp_path / "set", batch=10)._regular.stride.spans["x"] == tuple(x)
    # A size that does not fit, and a file of another size: parsed, as ever.
    index.write_text(json.dumps({**told, "stride": {**told["stride"], "spans": {"x": [x[0], 8], "y": y}}}))
    assert read(tmp_path / "set", batch=10, check="none")._regular is None
    index.write_text(json.dumps(told))
    assert read(tmp_path / "set", batch=10, check="none")._regular is not None
    assert read(tmp_path / "set", batch=10, check="quick")._regular is None
    with (tmp_path / "set-00000-of-00002.tfrecord").open("ab") as file:
        file.write(b"x")
    assert read(tmp_path / "set", batch=10, check="none")._regular is None


@pytest.mark.parametrize("packed", [None, 16])
@pytest.mark.parametrize("shuffle", [False, True])
def test_files_that_have_changed_since_are_noticed(tf, tmp_path, packed, shuffle):
    write(tmp_path / "set", {"x": np.zeros((70, 3), "f4")}, shards=1, packed=packed)
    data = read(tmp_path / "set", batch=10, epochs=1, shuffle=shuffle)
    (file,) = tmp_path.glob("*.tfrecord")
    file.write_bytes(b"\0" + file.read_bytes()[:-1])
    with pytest.raises(tf.errors.InvalidArgumentError, match="is not as it was when it was checked"):
        list(data.dataset())


def test_skipped_records_leave_the_rest_alike(tf, tmp_path):
    write(tmp_path / "set", {"x": np.arange(60, dtype="f4")}, shards=2)
    first = tmp_path / "set-00000-of-00002.tfrecord"
    content = bytearray(first.read_bytes())
    content[-5] ^= 1
    first.write_bytes(content)
    assert_same(tf, tmp_path / "set", batch=10, epochs=1, bad="skip", remainder=True)


def test_a_call_that_was_interrupted_knows_the_stride_of_what_it_had_finished(tmp_path, monkeypatch):
    given = {"x": np.zeros((40, 3), "f4")}
    real = __import__("yurt.data.writing", fromlist=["ShardWriter"]).ShardWriter

    def broken(path, *rest, **options):
        if "00001" in path.name:
            raise KeyboardInterrupt
        return real(path, *rest, **options)

    monkeypatch.setattr("yurt.data.writing.ShardWriter", broken)
    with pytest.raises(KeyboardInterrupt):
        write(tmp_path / "set", given, shards=2)
    monkeypatch.undo()
    assert write(tmp_path / "set", given, shards=2).kept == 1
    assert load_stride(tmp_path / "set.index.json") is not None
