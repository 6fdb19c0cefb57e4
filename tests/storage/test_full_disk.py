"""A disk that is really full."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.storage.helpers import FILES, command, contents, make_model
from yurt.storage import folder
from yurt.storage.checks import check_output
from yurt.storage.errors import StorageFailed
from yurt.storage.publish import publish
from yurt.storage.read import resolve, verify

MIB = 1024 * 1024


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Two mebibytes in all."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("a small disk needs root and mount(8)")
    point = tmp_path / "disk"
    point.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(point)], capture_output=True, text=True, check=False
    )
    if made.returncode != 0:
        pytest.skip(f"a small disk cannot be mounted here: {made.stderr.strip()}")
    yield point
    subprocess.run(["umount", str(point)], check=True)


@pytest.fixture
def large(tmp_path: Path) -> Path:
    return make_model(tmp_path / "large", {"a": os.urandom(MIB), "b": os.urandom(MIB + MIB // 2)})


@pytest.mark.parametrize("foreseen", [True, False])
def test_full(disk: Path, large: Path, tmp_path: Path, foreseen: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    out = disk / "models"
    publish(make_model(tmp_path / "small", FILES), str(out), "run-1")
    if not foreseen:  # somebody else takes the room meanwhile: the write itself fails
        monkeypatch.setattr(folder, "check_room", lambda *_: None)
    with pytest.raises(StorageFailed, match="no room left on device") as caught:
        publish(large, str(out), "run-2")
    assert caught.value.reason == "no-space"
    assert ("2.6 MB written" if not foreseen else "2.6 MB needed") in str(caught.value)
    assert (large / "a").stat().st_size == MIB
    assert {p.name for p in out.iterdir()} == {"run-1", "latest"}
    assert contents(out / "latest") == FILES
    (large / "b").write_bytes(b"smaller")
    publish(large, str(out), "run-2")
    assert resolve(out) == "run-2"
    verify(out)


def test_the_command_on_a_full_disk(disk: Path, large: Path) -> None:
    answer = command("--source", large, "--output", disk / "models", "--version", "run-1")
    assert (answer.code, answer.said["reason"], answer.stderr) == (5, "no-space", "")


def test_check_on_a_full_disk(disk: Path) -> None:
    check_output(str(disk / "models"))
    (disk / "filler").write_bytes(b"x" * (2 * MIB))
    with pytest.raises(StorageFailed) as caught:
        check_output(str(disk / "models"))
    assert caught.value.reason == "no-space"
    assert {p.name for p in disk.iterdir()} == {"filler"}
