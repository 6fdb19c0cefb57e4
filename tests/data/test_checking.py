"""Each kind of damage, and what is said of it: faults.txt holds the words."""

from __future__ import annotations

import gzip
import os
import shutil
import zlib
from pathlib import Path

import numpy as np
import pytest

from yurt.data import DataError, check, read, write
from yurt.data.checking import check_file
from yurt.data.columns import conform
from yurt.data.encoding import encode
from yurt.data.framing import frame, header
from yurt.data.index import Layout
from yurt.data.mending import mend
from yurt.data.schema import Schema

SCHEMA = Schema({"window": ("float32", (4, 2)), "label": "int8", "tokens": ("int64", (None,)), "name": "string"})
PLAIN = Schema({"window": ("float32", (4, 2))})
GOLDEN = Path(__file__).with_name("faults.txt")


def columns(rows: int) -> dict:
    return {
        "window": np.arange(rows * 8, dtype="f4").reshape(rows, 4, 2),
        "label": np.arange(rows),
        "tokens": [[1] * (row % 3) for row in range(rows)],
        "name": ["a"] * rows,
    }


def records(schema: Schema, given: dict) -> list[bytes]:
    made, rows = conform(schema, given)
    return encode(schema, made, rows)


def other(path: Path, schema: dict, given: dict) -> None:
    """A second file of the set, by another schema."""
    path.write_bytes(b"".join(frame(records(Schema(schema), given))))


def damage(name: str, file: Path) -> None:
    content = bytearray(file.read_bytes())
    size = int.from_bytes(content[:8], "little") + 16
    match name:
        case "empty":
            file.write_bytes(b"")
        case "truncated in a header":
            file.write_bytes(content[: size + 5])
        case "truncated in a record":
            file.write_bytes(content[: size + 40])
        case "a bad length":
            content[size] ^= 0x55
            file.write_bytes(content)
        case "a changed byte":
            content[size + 30] ^= 1
            file.write_bytes(content)
        case "another kind of file":
            file.write_bytes(b"PK\x03\x04" + bytes(60))
        case "gzip, undeclared":
            file.write_bytes(gzip.compress(bytes(content)))
        case "zlib, undeclared":
            file.write_bytes(zlib.compress(bytes(content)))
        case "no example":
            file.write_bytes(bytes(content) + b"".join(frame([b"hello, this is text"])))
        case "int64 for float32":
            other(
                file,
                {"window": ("int64", (8,)), "label": "int64", "tokens": ("int64", (None,)), "name": "string"},
                columns_of("window", 1),
            )
        case "string for int64":
            other(
                file,
                {"window": ("float32", (4, 2)), "label": "string", "tokens": ("int64", (None,)), "name": "string"},
                columns_of("label", ["x"]),
            )
        case "another length":
            other(
                file,
                {"window": ("float32", (7,)), "label": "int8", "tokens": ("int64", (None,)), "name": "string"},
                {**columns(2), "window": np.zeros((2, 7), "f4")},
            )
        case "a feature is missing":
            other(
                file,
                {"windows": ("float32", (4, 2)), "label": "int8", "tokens": ("int64", (None,)), "name": "string"},
                {**columns(2), "windows": np.zeros((2, 4, 2), "f4")},
            )
        case "a number too large":
            other(
                file,
                {"window": ("float32", (4, 2)), "label": "int64", "tokens": ("int64", (None,)), "name": "string"},
                {**columns(2), "label": np.array([1, 300])},
            )
        case "over protobuf's limit":
            with file.open("r+b") as opened:
                opened.seek(0, os.SEEK_END)
                opened.write(header(2**31))
                opened.truncate(opened.tell() + 2**31 + 4)  # a hole: no disk is used


def columns_of(name: str, value) -> dict:
    given = columns(1)
    given[name] = np.ones((1, 8), "i8") if name == "window" else value
    return given


DAMAGES = [
    "empty",
    "truncated in a header",
    "truncated in a record",
    "a bad length",
    "a changed byte",
    "another kind of file",
    "gzip, undeclared",
    "zlib, undeclared",
    "no example",
    "int64 for float32",
    "string for int64",
    "another length",
    "a feature is missing",
    "a number too large",
]


@pytest.mark.parametrize("name", DAMAGES)
def test_what_is_said(tmp_path, name):
    write(tmp_path / "set", columns(6), schema=SCHEMA, shards=2)
    (tmp_path / "set.index.json").unlink()
    damage(name, tmp_path / "set-00001-of-00002.tfrecord")
    found = check(tmp_path / "set")
    assert not found.ok
    said = "\n".join(str(fault).replace(f"{tmp_path}/", "") for fault in found.faults)
    golden = dict(part.split("\n", 1) for part in GOLDEN.read_text().strip().split("\n\n"))
    assert said == golden[f"# {name}"].strip()
    with pytest.raises(DataError) as raised:
        read(tmp_path / "set", batch=1, workers=1, index=0)
    assert str(raised.value).startswith(str(found.faults[0]))


def test_over_the_limit_of_protobuf(tmp_path):
    write(tmp_path / "set", columns(6), schema=SCHEMA, shards=1)
    file = tmp_path / "set-00000-of-00001.tfrecord"
    damage("over protobuf's limit", file)
    if file.stat().st_blocks * 512 > 2**28:
        pytest.skip("this filesystem has no holes")
    report = check_file(file, Layout(SCHEMA))
    assert [fault.message for fault in report.faults] == [
        "has 2,147,483,648 bytes; protobuf reads at most 2,147,483,647"
    ]
    assert (report.records, report.bad, report.cut) == (6, [6], False)


def test_with_an_index_sizes_and_lost_files_are_told(tmp_path):
    write(tmp_path / "set", columns(9), schema=SCHEMA, shards=3)
    first, second, _ = sorted(tmp_path.glob("*.tfrecord"))
    first.unlink()
    second.write_bytes(second.read_bytes()[:-7])
    found = check(tmp_path / "set")
    assert [(fault.kind, Path(fault.file).name) for fault in found.faults] == [
        ("lost", first.name),
        ("size", second.name),
        ("truncated", second.name),
    ]
    assert found.files[0].bad_examples == 1


@pytest.mark.parametrize("compression", ["gzip", "zlib"])
@pytest.mark.parametrize("cut", [5, 40, -3])
def test_a_packed_file_that_is_cut_off(tmp_path, compression, cut):
    rows = np.random.default_rng(0).normal(size=(200, 4, 2)).astype("f4")
    write(tmp_path / "set", {"window": rows}, shards=1, compression=compression)
    (file,) = tmp_path.glob("*.tfrecord")
    file.write_bytes(file.read_bytes()[:cut])
    report = check_file(file, Layout(PLAIN, compression))
    assert report.cut
    assert report.faults[-1].kind in ("truncated", "not-tfrecord")


@pytest.mark.parametrize("packed", [None, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nan_and_infinity_if_asked(tmp_path, packed, dtype, value):
    rows = np.zeros((8, 4, 2), dtype)
    rows[6, 2, 1] = value
    write(tmp_path / "set", {"window": rows}, shards=1, packed=packed)
    assert check(tmp_path / "set").ok
    found = check(tmp_path / "set", nan=True)
    where = "row 2 of it, 2, 1" if packed else "2, 1"
    assert [fault.message for fault in found.faults] == [
        f"holds {value} at ({where}); 1 of {32 if packed else 8} values are not finite"
    ]
    assert found.faults[0].record == (1 if packed else 6)


def test_records_that_are_alike_are_still_looked_at(tmp_path):
    # The second record of a length is compared with the first: differences outside the values are noticed.
    good = records(PLAIN, columns(3))
    bad = good[1].replace(b"window", b"wibdow")
    file = tmp_path / "x.tfrecord"
    file.write_bytes(b"".join(frame([good[0], bad, good[2]])))
    report = check_file(file, Layout(PLAIN))
    assert (report.records, report.bad) == (2, [1])


def test_a_damaged_file_is_mended_without_its_bad_records(tmp_path):
    write(tmp_path / "set", columns(10), schema=SCHEMA, shards=1, compression="gzip")
    (file,) = tmp_path.glob("*.tfrecord")
    plain = bytearray(gzip.decompress(file.read_bytes()))
    plain[30] ^= 1
    file.write_bytes(gzip.compress(bytes(plain[:-3])))
    layout = Layout(SCHEMA, "gzip")
    mended = mend([check_file(file, layout)], "gzip")
    assert mended.rows == [8]
    assert check_file(mended.files[0], layout).records == 8
    shutil.rmtree(mended.files[0].parent)


def test_packed_records_are_checked_too(tmp_path):
    write(tmp_path / "set", columns(10), schema=SCHEMA, shards=1, packed=4)
    assert check(tmp_path / "set").examples == 10
    file = tmp_path / "set-00000-of-00001.tfrecord"
    wrong = Schema({"window": ("float32", (4, 3)), "label": "int16", "tokens": ("int64", (None,)), "nam": "string"})
    report = check_file(file, Layout(wrong, packed=4))
    assert [f"{fault.feature} {fault.message}" for fault in report.faults[:3]] == [
        "window has 128 bytes, 4 rows of float32 (4, 3) are 192",
        "label has 4 bytes, 4 rows of int16 are 8",
        "nam is missing; did you mean name?",
    ]
    plain = check_file(file, Layout(SCHEMA))
    assert plain.faults[0].message == "is bytes, the schema says float32 (4, 2)"
