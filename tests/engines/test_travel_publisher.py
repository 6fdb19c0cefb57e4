"""The object store's client for tasks whose Python lacks it: lent through the bucket, tried before the task starts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.engines.test_nomad_node import large, moto, s3  # noqa: F401 - fixtures
from yurt.engines.travel.place import publisher as place
from yurt.engines.travel.place.problem import NotReady
from yurt.engines.travel.publisher import here, publisher


@pytest.fixture
def without_obstore(tmp_path, monkeypatch):
    """This Python as it is where nobody has installed anything, to the code that runs beside a task."""
    bare = tmp_path / "bare"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E "$@"\n')
    bare.chmod(0o755)
    monkeypatch.setattr(place.sys, "executable", str(bare))
    return str(bare)


def test_it_is_lent_once_and_runs_where_there_is_none(s3, moto, tmp_path, without_obstore):  # noqa: F811
    bucket, _proxy = s3
    order = publisher(f"s3://{bucket}/models")
    [key] = moto.objects(bucket)
    assert key.startswith("models/.yurt/packages/obstore-")
    assert publisher(f"s3://{bucket}/models")["sha256"] == order["sha256"]
    assert list(moto.objects(bucket)) == [key], "all runs share one"
    first = place.borrow(order, str(tmp_path / "state"), f"s3://{bucket}/models")
    said = subprocess.check_output(
        [without_obstore, "-c", f"{first}import obstore; print(obstore.__file__)"], text=True
    )
    assert said.startswith(str(tmp_path / "state" / "packages" / "obstore"))
    assert place.borrow({"url": "nowhere", "platform": list(here())}, str(tmp_path / "state"), "s3://b/x") == first


def test_a_python_that_has_it_borrows_nothing(tmp_path):
    assert place.borrow(None, str(tmp_path), "s3://b/x") == ""


def test_folders_need_none():
    assert publisher(None) is None
    assert publisher("file:///models") is None


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (None, "has no obstore"),
        ({"why_not": "the launcher could not lend its own: denied"}, "and the launcher could not lend its own: denied"),
        ({"platform": ["plan9", "mips", ""], "url": "", "sha256": ""}, "(plan9 mips ) does not run here"),
    ],
)
def test_what_could_never_be_published_is_said_before_the_start(order, said, tmp_path, without_obstore):
    with pytest.raises(NotReady) as raised:
        place.borrow(order, str(tmp_path), "s3://models/x")
    assert said in str(raised.value)
    assert "s3://models/x" in str(raised.value)
    assert "pip install obstore" in raised.value.hint


def test_a_bucket_that_takes_nothing_is_told_in_the_order(s3):  # noqa: F811
    assert "could not lend" in publisher("s3://no-such-bucket-here/models")["why_not"]
