"""What a path means, and what is passed over."""

from __future__ import annotations

import numpy as np
import pytest

from yurt.data.errors import DataError
from yurt.data.find import find, left_over
from yurt.data.writing import write


@pytest.fixture
def folder(tmp_path):
    place = tmp_path / "it's a place"
    for name in ("train", "test"):
        write(place / name, {"x": np.arange(8)}, shards=2)
    for junk in (
        "_SUCCESS",
        ".hidden",
        "train-00000-of-00002.tfrecord.tmp",
        "train-00009-of-00009.tfrecord.crc",
        "notes.txt",
    ):
        (place / junk).write_text("junk")
    return place


def names(found):
    return [file.name for file in found.files]


TRAIN = ["train-00000-of-00002.tfrecord", "train-00001-of-00002.tfrecord"]


def test_a_set_a_pattern_a_file_a_list(folder):
    for path in (folder / "train", f"{folder}/train-*", f"{folder}/train-*.tfrecord"):
        found = find(path)
        assert names(found) == TRAIN
        assert found.layout is not None
        assert set(found.index) == set(TRAIN)
        assert not found.lost
    assert names(find(folder / TRAIN[0])) == TRAIN[:1]
    assert find(folder / TRAIN[0]).layout is not None
    assert names(find([folder / TRAIN[1], folder / TRAIN[0]])) == TRAIN
    assert "train-00000-of-00002.tfrecord.tmp" in find(folder / "train").passed_over


def test_a_folder_with_one_set(tmp_path):
    write(tmp_path / "only", {"x": np.arange(8)}, shards=2)
    (tmp_path / "_SUCCESS").touch()
    found = find(tmp_path)
    assert len(found.files) == 2
    assert found.layout is not None


def test_a_folder_of_somebody_else(tmp_path):
    for name in ("part-r-00000", "part-r-00001", "_SUCCESS", ".part-r-00000.crc"):
        (tmp_path / name).write_bytes(b"x")
    found = find(tmp_path)
    assert names(found) == ["part-r-00000", "part-r-00001"]
    assert found.passed_over == [".part-r-00000.crc", "_SUCCESS"]


def test_a_file_that_the_index_names_is_lost(folder):
    (folder / TRAIN[1]).unlink()
    assert find(folder / "train").lost == TRAIN[1:]


@pytest.mark.parametrize(
    ("path", "message", "hint"),
    [
        ("tran", "there is no file, folder or set {}/tran", "did you mean train?"),
        ("trian-*", "no file matches {}/trian-*", "did you mean train?"),
        ("nowhere/train", "there is no file, folder or set {}/nowhere/train", "there is no folder {}/nowhere"),
        ("", "{} holds 2 sets: test, train", "name one: {}/test"),
        ("not*", "no file matches {}/not*", "it matches notes.txt and the like, which hold no records"),
    ],
)
def test_nothing_there(folder, path, message, hint):
    with pytest.raises(DataError) as raised:
        find(f"{folder}/{path}" if path else folder)
    assert str(raised.value) == message.format(folder)
    assert raised.value.hint == hint.format(folder)


def test_elsewhere():
    with pytest.raises(DataError, match="is not on this machine"):
        find("gs://bucket/train")


@pytest.mark.parametrize(
    "name", ["_SUCCESS", ".x", "a.tmp", "a.tfrecord.partial", "a~", "_temporary", "a.crc", "a.inprogress"]
)
def test_left_over(name):
    assert left_over(name)
