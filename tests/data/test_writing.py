"""Files as they are left: balanced, whole, kept when a call is made again; from every kind of source."""

from __future__ import annotations

import itertools
import json
import os
import pty
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from tests.data.samples import columns, every_feature, same
from yurt.data import DataError, check, inspect, write
from yurt.data.framing import crc
from yurt.data.index import load_index, load_layout
from yurt.data.shard import ShardWriter
from yurt.data.sources import source_of

X = {"x": np.arange(20, dtype="f4").reshape(10, 2), "y": np.arange(10)}


def rows_of(path, count=100) -> list[dict]:
    return inspect(path, rows=count).rows


def test_what_lies_there(tmp_path):
    written = write(tmp_path / "set", X, shards=4)
    names = [f"set-0000{number}-of-00004.tfrecord" for number in range(4)]
    visible = sorted(file.name for file in tmp_path.iterdir() if not file.name.startswith("."))
    assert visible == [*names, "set.index.json", "set.schema.json"]
    assert sorted(shard.examples for shard in written.shards) == [2, 2, 3, 3]
    for shard in load_index(tmp_path / "set.index.json"):
        content = (tmp_path / shard.name).read_bytes()
        assert (shard.bytes, shard.crc32c) == (len(content), f"{crc(content):08x}")
    index = json.loads((tmp_path / "set.index.json").read_text())
    assert (index["version"], index["examples"], index["records"]) == (1, 10, 10)
    assert load_layout(tmp_path / "set.schema.json").as_json()["features"] == {
        "x": {"dtype": "float32", "shape": [2], "stored": "list"},
        "y": {"dtype": "int64", "shape": [], "stored": "list"},
    }
    assert [row["y"] for row in rows_of(tmp_path / "set")] == list(range(10))


def test_there_are_no_more_files_than_rows(tmp_path):
    assert len(write(tmp_path / "a", {"x": np.arange(3)}, shards=8).shards) == 3
    assert len(write(tmp_path / "b", ({"x": n} for n in range(3)), shards=8).shards) == 3


def test_the_same_call_again_does_nothing_and_another_is_refused(tmp_path):
    write(tmp_path / "set", X, shards=4)
    before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("*.tfrecord")}
    assert write(tmp_path / "set", X, shards=4).kept == 4
    assert before == {file: file.stat().st_mtime_ns for file in tmp_path.glob("*.tfrecord")}
    with pytest.raises(DataError, match="there are other data in") as raised:
        write(tmp_path / "set", X, shards=2)
    assert raised.value.hint == "replace=True writes over them"
    write(tmp_path / "set", X, shards=2, replace=True)
    assert len(list(tmp_path.glob("*.tfrecord"))) == 2
    assert check(tmp_path / "set").ok


@pytest.mark.parametrize("processes", [1, 2])
def test_finished_files_are_kept(tmp_path, monkeypatch, processes):
    real, made = ShardWriter.close, []

    def breaks(self):
        if len(made) == 2:
            raise OSError(28, "No space left on device")
        made.append(self._path.name)
        return real(self)

    monkeypatch.setattr(ShardWriter, "close", breaks)
    with pytest.raises(OSError, match="No space left"):
        write(tmp_path / "set", X, shards=4, processes=1)
    assert not (tmp_path / "set.index.json").exists()
    assert sorted(file.name for file in tmp_path.glob("*.tfrecord")) == made
    assert not list(tmp_path.glob(".*.tmp"))
    monkeypatch.setattr(ShardWriter, "close", real)
    again = write(tmp_path / "set", X, shards=4, processes=processes)
    assert again.kept == 2
    assert check(tmp_path / "set").examples == 10


def test_killed_in_the_middle_and_begun_again(tmp_path):
    program = f"""
import numpy as np
from yurt import data
data.write({str(tmp_path / "set")!r}, {{"x": np.random.default_rng(0).normal(size=(40000, 64))}}, shards=10,
           compression="gzip", processes=2)
"""
    process = subprocess.Popen([sys.executable, "-c", program])
    end = time.monotonic() + 30
    while len(list(tmp_path.glob("*.tfrecord"))) < 2 and time.monotonic() < end:
        time.sleep(0.005)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    finished = len(list(tmp_path.glob("*.tfrecord")))
    time.sleep(0.5)  # the children see that their parent is gone
    assert not (tmp_path / "set.index.json").exists()
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    found = check(tmp_path / "set")
    assert found.ok
    assert found.examples == 40000
    assert finished < 10
    assert not list(tmp_path.glob(".*.tmp"))


def test_two_at_once_are_refused(tmp_path):
    import fcntl

    with (tmp_path / ".set.writing.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(DataError, match="another process is writing"):
            write(tmp_path / "set", X)


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize("packed", [None, 4])
@pytest.mark.parametrize("stream", [False, True])
def test_every_way_gives_the_same_rows(tmp_path, processes, packed, stream):
    schema = every_feature()
    given = columns(schema, 23)
    data = ({name: given[name][row] for name in schema} for row in range(23)) if stream else given
    written = write(tmp_path / "set", data, schema=schema, shards=5, packed=packed, processes=processes)
    assert max(shard.examples for shard in written.shards) - min(shard.examples for shard in written.shards) <= 1
    found = rows_of(tmp_path / "set")
    order = [row for shard in range(5) for row in range(shard, 23, 5)] if stream else range(23)
    for row, number in zip(found, order, strict=True):
        for name in schema:
            assert same(row[name], given[name][number]), name


def test_shuffled_by_a_seed(tmp_path):
    write(tmp_path / "a", X, shards=2, shuffle=1)
    write(tmp_path / "b", X, shards=2, shuffle=1)
    write(tmp_path / "c", X, shards=2, shuffle=2)
    order = {name: [int(row["y"]) for row in rows_of(tmp_path / name)] for name in "abc"}
    assert order["a"] == order["b"] != order["c"] != list(range(10))
    assert sorted(order["a"]) == list(range(10))
    with pytest.raises(DataError, match="cannot be shuffled while they are written"):
        write(tmp_path / "d", iter([{"y": 1}]), shuffle=1)


FRAME = {"id": [1, 2, 3], "value": [0.5, 1.5, -2.0], "name": ["a", "ü", ""]}


@pytest.mark.parametrize("kind", ["pandas", "csv", "tsv", "parquet", "two parquet", "pattern", "table", "frames"])
def test_tables(tmp_path, kind):
    frame = pd.DataFrame(FRAME)
    match kind:
        case "pandas":
            data = frame
        case "csv":
            data = tmp_path / "x.csv"
            frame.to_csv(data, index=False)
        case "tsv":
            data = tmp_path / "x.tsv"
            frame.to_csv(data, index=False, sep="\t")
        case "parquet":
            data = str(tmp_path / "x.parquet")
            frame.to_parquet(data, row_group_size=2)
        case "two parquet":
            data = [tmp_path / "a.parquet", tmp_path / "b.parquet"]
            frame[:1].to_parquet(data[0])
            frame[1:].to_parquet(data[1])
        case "pattern":
            data = f"{tmp_path}/*.parquet"
            frame[:2].to_parquet(tmp_path / "a.parquet")
            frame[2:].to_parquet(tmp_path / "b.parquet")
        case "table":
            import pyarrow as pa

            data = pa.Table.from_pandas(frame, preserve_index=False)
        case "frames":
            data = iter([frame[:2], frame[2:]])
    write(tmp_path / "out" / "set", data, shards=1)
    found = inspect(tmp_path / "out")
    assert {name: str(feature) for name, feature in found.layout.schema.items()} == {
        "id": "int64",
        "value": "float64",
        "name": "string",
    }
    assert [(int(row["id"]), float(row["value"]), row["name"].decode()) for row in found.rows] == list(
        zip(*FRAME.values(), strict=True)
    )


def test_lists_in_parquet(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table(
        {
            "any": pa.array([[1, 2], [], [3]], pa.list_(pa.int32())),
            "fixed": pa.array([[1.0, 2.0]] * 3, pa.list_(pa.float32(), 2)),
            "word": pa.array(["a", "b", "a"]).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "x.parquet")
    write(tmp_path / "set", tmp_path / "x.parquet", shards=2)
    found = rows_of(tmp_path / "set")
    assert [row["any"].tolist() for row in found] == [[1, 2], [], [3]]
    assert [row["fixed"].tolist() for row in found] == [[1.0, 2.0]] * 3
    assert [row["word"] for row in found] == [b"a", b"b", b"a"]


@pytest.mark.parametrize("rows", [1, 7, 8192, 20000])
def test_parquet_is_cut_at_the_right_rows(tmp_path, rows):
    pd.DataFrame({"x": np.arange(rows)}).to_parquet(tmp_path / "x.parquet", row_group_size=3000)
    source = source_of(tmp_path / "x.parquet", None)
    assert source.rows == rows
    edges = [0, rows // 3, rows // 2, rows]
    for first, end in itertools.pairwise(edges):
        found = [int(x) for block, _ in source.blocks(first, end) for x in block["x"]]
        assert found == list(range(first, end))


@pytest.mark.parametrize(
    ("data", "options", "message", "hint"),
    [
        (
            {"windwo": np.zeros(3)},
            {"schema": {"window": "float32"}},
            "there is no column 'window' among the data",
            "did you mean windwo?",
        ),
        (
            {"x": np.zeros((3, 2))},
            {"schema": {"x": ("float32", (3,))}},
            "column x has rows of shape (2,), the schema says (3,)",
            None,
        ),
        ({"x": np.zeros(3), "y": np.zeros(4)}, {}, "the columns have different numbers of rows: x 3, y 4", None),
        (
            {"x": np.array([1, 300])},
            {"schema": {"x": "uint8"}},
            "row 1 of column x holds 300, which uint8 does not hold",
            "the column is int64; change the schema or the values",
        ),
        (
            {"x": np.array([1, -1])},
            {"schema": {"x": "uint64"}},
            "row 1 of column x holds -1, which uint64 does not hold",
            "the column is int64; change the schema or the values",
        ),
        (
            {"x": np.array([1.0, 1.5])},
            {"schema": {"x": "int64"}},
            "row 1 of column x holds 1.5, which int64 does not hold",
            "the column is float64; change the schema or the values",
        ),
        (
            {"x": np.array([1.0, np.nan])},
            {"schema": {"x": "int64"}},
            "row 1 of column x holds nan, which int64 does not hold",
            "the column is float64; change the schema or the values",
        ),
        (
            {"x": np.array([1e30])},
            {"schema": {"x": "float16"}},
            "row 0 of column x holds 1e+30, which float16 does not hold",
            "the column is float64; change the schema or the values",
        ),
        ({"x": ["a", None]}, {"schema": {"x": "string"}}, "row 1 of column x is absent, the schema says string", None),
        (
            {"x": [[1], None]},
            {"schema": {"x": ("int64", (None,))}},
            "row 1 of column x is absent",
            "an empty list is a row without values",
        ),
        (
            {"x": [[1], [1, 2], [1]]},
            {"schema": {"x": ("int64", (1,))}},
            "the rows of column x have different shapes: (1,) and (2,)",
            "for variable length write None as the first size of its shape",
        ),
        (iter([{"x": 1}, {"y": 1}]), {}, "row 1 has no feature x", None),
        (iter([]), {}, "there is no row to write", None),
        (np.zeros(3), {}, "an array needs a name", 'write({"window": array}, ...)'),
        (3, {}, "int cannot be written", "arrays by name, pandas, rows, CSV or Parquet"),
        ("nothing*.csv", {}, "no file matches nothing*.csv", None),
        ("x.xlsx", {}, "x.xlsx is neither CSV nor Parquet by its name", ".csv, .tsv, .parquet, .pq"),
        ({"x": np.zeros(3)}, {"compression": "gzp"}, "'gzp' is no compression of TFRecord files", "did you mean gzip?"),
    ],
)
def test_what_is_refused(tmp_path, data, options, message, hint):
    with pytest.raises(DataError) as raised:
        write(tmp_path / "set", data, shards=1, **options)
    assert (str(raised.value), raised.value.hint) == (message, hint)
    assert not list(tmp_path.glob("*.tfrecord"))
    assert not list(tmp_path.glob(".*.tmp"))


def test_absent_values_in_tables_are_named(tmp_path):
    frame = pd.DataFrame({"x": pd.array([1, None, 3], "Int64")})
    with pytest.raises(DataError, match="row 1 of column x is absent"):
        write(tmp_path / "a", frame, schema={"x": "int64"})
    frame.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(DataError, match="row 1 of column x is absent"):
        write(tmp_path / "b", tmp_path / "x.parquet")


def test_a_record_over_the_limit_of_protobuf_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("yurt.data.shard.MOST_BYTES", 100)
    with pytest.raises(DataError, match=r"record 0 would have \d+ bytes; protobuf reads at most 100"):
        write(tmp_path / "set", {"x": ["a" * 200]}, shards=1)
    assert not list(tmp_path.glob("*.tfrecord"))
    assert not list(tmp_path.glob(".*.tmp"))


def test_a_bar_is_shown_on_a_terminal(tmp_path, capfd):
    ours, theirs = pty.openpty()
    place = str(tmp_path / "set")
    program = f"from yurt import data; data.write({place!r}, {{'x': list(range(50))}})"
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100"}
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60, stderr=theirs, env=environment)
    os.close(theirs)
    assert b"50/50" in os.read(ours, 1 << 16)
    os.close(ours)
    write(tmp_path / "other", X)
    assert capfd.readouterr().err == ""


def test_an_unfinished_set_is_not_taken_for_a_whole_one(tmp_path):
    write(tmp_path / "set", X, shards=3)
    (tmp_path / "set.index.json").unlink()
    (tmp_path / "set-00002-of-00003.tfrecord").unlink()
    found = check(tmp_path / "set")
    assert [(fault.kind, fault.message) for fault in found.faults] == [
        ("lost", "is not there; the numbers of the other files say that it should be")
    ]
