"""Framing and the Example's wire format, without TensorFlow."""

from __future__ import annotations

import io
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.samples import columns, every_feature, same
from yurt.data.columns import conform
from yurt.data.decoding import NotAnExample, decode, unvarint, value_of
from yurt.data.encoding import encode, encode_framed, encode_packed, varint, varints
from yurt.data.framing import Broken, frame, header, length_in, masked, records
from yurt.data.index import Layout
from yurt.data.looking import rows_of
from yurt.data.schema import Feature, Schema


def test_a_checksum_is_masked_as_the_format_says():
    # The CRC32C of 32 zero bytes is 8a9136aa (RFC 3720).
    from yurt.data.framing import crc

    assert crc(bytes(32)) == 0x8A9136AA
    assert masked(0x8A9136AA) == (((0x8A9136AA >> 15) | (0x8A9136AA << 17)) + 0xA282EAD8) & 0xFFFFFFFF
    assert length_in(header(1500)) == 1500
    assert length_in(b"\0" * 12) is None


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_framing_comes_back(contents):
    file = io.BytesIO(b"".join(frame(contents)))
    assert [record for _, record in records(file)] == contents


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=5), st.data())
def test_any_one_changed_byte_is_noticed(contents, data):
    whole = bytearray(b"".join(frame(contents)))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= data.draw(st.integers(1, 255))
    found = [record for _, record in records(io.BytesIO(bytes(whole)))]
    assert any(isinstance(record, Broken) for record in found)
    assert [record for record in found if isinstance(record, bytes)] != contents


@given(st.lists(st.binary(max_size=40), min_size=1, max_size=5), st.data())
def test_any_cut_is_noticed(contents, data):
    whole = b"".join(frame(contents))
    edges = {0}
    for content in contents:
        edges.add(max(edges) + len(content) + 16)
    cut = data.draw(st.integers(1, len(whole) - 1).filter(lambda at: at not in edges) if len(whole) > 1 else st.just(0))
    found = [record for _, record in records(io.BytesIO(whole[:cut]))]
    assert isinstance(found[-1], Broken)
    assert found[-1].kind == "truncated"


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_varints(numbers):
    array = np.array(numbers, np.int64)
    stream, sizes = varints(array)
    assert stream == b"".join(varint(number % 2**64) for number in numbers)
    assert sizes.sum() == len(stream)
    assert unvarint(stream).tolist() == numbers


def test_every_feature_comes_back():
    schema = every_feature()
    given_columns = columns(schema, 7)
    conformed, rows = conform(schema, given_columns)
    made = encode(schema, conformed, rows)
    assert len(made) == rows == 7
    for row, record in enumerate(made):
        found = decode(record)
        assert sorted(found) == sorted(schema)
        for name, feature in schema.items():
            assert same(value_of(feature, found[name], record), given_columns[name][row]), name


@pytest.mark.parametrize("packed", [1, 3, 7, 64])
def test_every_feature_comes_back_packed(packed):
    schema = every_feature()
    given_columns = columns(schema, 7)
    conformed, rows = conform(schema, given_columns)
    made = encode_packed(schema, conformed, rows, packed)
    assert len(made) == -(-7 // packed)
    back = [row for record in made for row in rows_of(Layout(schema, packed=packed), record)]
    for row, found in enumerate(back):
        for name in schema:
            assert same(found[name], given_columns[name][row]), name


def test_records_of_one_size_are_framed_at_once():
    schema = Schema({"x": ("float32", (5,)), "y": ("uint8", (3,)), "z": "float16"})
    conformed, rows = conform(schema, columns(schema, 9))
    assert encode_framed(schema, conformed, rows) == b"".join(frame(encode(schema, conformed, rows)))


@given(st.binary(max_size=60))
def test_any_bytes_are_an_example_or_said_to_be_none(content):
    try:
        decode(content)
    except NotAnExample:
        pass


def test_what_other_writers_do_is_read():
    # Numbers that are not packed, an unknown field, a feature twice: the last counts.
    ints = b"\x1a\x04" + b"\x08\x05" + b"\x08\x07"
    old = b"\x0a\x01x" + b"\x12\x02\x12\x00"
    new = b"\x0a\x01x" + b"\x12" + bytes([len(ints)]) + ints
    body = b"".join(b"\x0a" + bytes([len(entry)]) + entry for entry in (old, new)) + b"\x78\x01"
    record = b"\x0a" + bytes([len(body)]) + body
    values = decode(record)["x"]
    assert values.kind == 3
    assert value_of(Feature("int64", (2,)), values, record).tolist() == [5, 7]


def test_writing_checking_and_asking_to_read_import_no_tensorflow(tmp_path):
    program = f"""
import sys, numpy as np
from yurt import data
data.write({str(tmp_path / "set")!r}, {{"x": np.zeros((9, 2), "float32")}})
assert data.check({str(tmp_path / "set")!r}).ok
data.inspect({str(tmp_path / "set")!r})
data.read({str(tmp_path / "set")!r}, batch=3)
heavy = {{"tensorflow", "pandas", "pyarrow", "rich"}} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
