"""A publisher that is killed, at every step it takes and in the middle of a copy."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from tests.storage.helpers import FILES, contents, make_model
from yurt.storage.publish import publish
from yurt.storage.read import resolve, verify

# The calls that change something outside the process; the n-th of them is not made: the process dies instead.
VICTIM = """
import os, pathlib, shutil, signal, sys
source, output, version, last = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
count = 0
def deadly(real):
    def call(*args, **kw):
        global count
        count += 1
        if count > last:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*args, **kw)
    return call
for name in ("fsync", "rename", "replace", "symlink", "unlink", "mkdir", "open", "rmdir"):
    setattr(os, name, deadly(getattr(os, name)))
from yurt.storage.publish import publish
publish(pathlib.Path(source), output, version)
print("whole")
"""


def whole_or_not_there(out: Path, before: str | None) -> None:
    """What a reader may rely on at any time."""
    assert not (out / "run-2").exists() or verify(out, "run-2").files
    if before is not None:
        assert resolve(out) in (before, "run-2")
        verify(out)
    elif os.path.lexists(out / "latest"):
        verify(out)


def test_killed_at_every_step(tmp_path: Path) -> None:
    model = make_model(tmp_path / "m", {"a": b"first", "deep/b": b""})
    out = tmp_path / "out"
    publish(model, str(out), "run-1")
    (model / "a").write_bytes(b"second")
    for step in range(100):
        done = subprocess.run(
            [sys.executable, "-c", VICTIM, str(model), str(out), "run-2", str(step)],
            capture_output=True,
            text=True,
            check=False,
        )
        whole_or_not_there(out, "run-1")
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        if step % 3 == 0:  # the next publish heals, whatever was left; its steps are taken from the start again
            publish(model, str(out), "run-2")
            assert {p.name for p in out.iterdir()} == {"run-1", "run-2", "latest"}
            assert resolve(out) == "run-2"
            verify(out)
            subprocess.run(["rm", "-r", str(out / "run-2")], check=True)
            (out / "latest").unlink()
            (out / "latest").symlink_to("run-1")
    assert done.returncode == 0
    assert step > 10
    assert {p.name for p in out.iterdir()} == {"run-1", "run-2", "latest"}


def big_publish(tmp_path: Path, number: int) -> tuple[Path, Path, int, str]:
    """Start the command with a large model and strike while it copies."""
    small = make_model(tmp_path / "small", FILES)
    out = tmp_path / "out"
    publish(small, str(out), "run-1")
    big = tmp_path / "big"
    big.mkdir()
    with (big / "weights").open("wb") as writer:
        writer.truncate(1_500_000_000)  # a hole: takes no room, and takes a while to copy
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "yurt.storage.publish",
            "--source",
            str(big),
            "--output",
            str(out),
            "--version",
            "run-2",
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    copied = out / ".run-2.partial/weights"
    while not (copied.exists() and copied.stat().st_size > 5_000_000):
        assert process.poll() is None
        time.sleep(0.005)
    process.send_signal(number)
    start = time.monotonic()
    stdout, _ = process.communicate(timeout=20)
    assert time.monotonic() - start < 2
    return big, out, process.returncode, stdout


def test_kill_9_in_the_middle_of_a_copy(tmp_path: Path) -> None:
    big, out, code, _ = big_publish(tmp_path, signal.SIGKILL)
    assert code == -signal.SIGKILL
    assert resolve(out) == "run-1"
    assert contents(out / "latest") == FILES
    assert not (out / "run-2").exists()
    assert (out / ".run-2.partial").exists()
    os.truncate(big / "weights", 1000)
    publish(big, str(out), "run-3")  # the publish of another run takes the leftovers away
    assert {p.name for p in out.iterdir()} == {"run-1", "run-3", "latest"}
    publish(big, str(out), "run-2")
    verify(out)


def test_sigterm_in_the_middle_of_a_copy_leaves_nothing(tmp_path: Path) -> None:
    _, out, code, stdout = big_publish(tmp_path, signal.SIGTERM)
    assert code == 5
    said = json.loads(stdout)
    assert (said["ok"], said["message"]) == (False, "publishing was stopped by SIGTERM")
    assert {p.name for p in out.iterdir()} == {"run-1", "latest"}
    assert resolve(out) == "run-1"
