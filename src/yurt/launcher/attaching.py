"""Finds a run, and somebody to look after it: a run on a cluster goes on without its launcher, a verb needs one."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Callable
from typing import Any, Final

from yurt.contract.state import BROKEN, Verdict
from yurt.errors import LauncherError, StoreError, YurtError
from yurt.launcher import background, records
from yurt.launcher.records import RunFolder, Snapshot
from yurt.launcher.remote_host import RunGone
from yurt.launcher.serving import beside

#: Seconds for a new process to find the run on its cluster.
_FOUND_S: Final = 60.0


def find(name: str | None, *, otherwise: Callable[[str], object] | None = None) -> RunFolder:
    """As `records.find`; a run that lives on a cluster and has nobody beside it gets somebody.

    Raises RunNotFound where there is no such run. Where its cluster cannot be spoken to, `otherwise` is told so, and
    what was last seen of the run is there; without it that is a LauncherError.
    """
    folder = records.find(name)
    if folder.remote() is not None and folder.host() is None:
        try:
            _attach(folder)
        except LauncherError as error:
            if otherwise is None:
                raise
            otherwise(f"yurt: this is what was last seen of {folder.run_id}: {error}")
    return folder


def _attach(folder: RunFolder) -> None:
    """A process in the background that looks after the run until its end; returns once it has looked."""
    process = background.start("yurt.launcher.attached", folder.run_id, run=folder, append=True)
    assert process.stdin
    process.stdin.close()
    assert process.stdout
    with process.stdout as pipe:
        answer: dict[str, Any] = json.loads(pipe.readline() or b"{}")
    if not answer.get("ok"):
        message = answer.get("message", f"nobody could be set beside the run; see {folder.launcher_log}")
        raise LauncherError(message, hint=answer.get("hint"))


def let_go(folder: RunFolder, *, by: str) -> list[str]:
    """Forget a run of this machine that nobody serves: see `RemoteHost.let_go`."""
    return beside(folder).let_go(by=by)


def serve_attached(run_id: str) -> int:
    """The process that `_attach` starts: answers one line, then serves."""
    folder = records.find(run_id)
    with (folder.path / "attached.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return _wait_for_other(folder)  # two verbs at the same time: one process is enough
        try:
            host = beside(folder)
            host.attach()
        except RunGone as error:
            _end(folder, str(error))
            print(json.dumps({"ok": True}), flush=True)
            return 0
        except YurtError as error:
            print(json.dumps({"ok": False, "message": str(error), "hint": error.hint}), flush=True)
            return error.exit_code
        print(json.dumps({"ok": True}), flush=True)
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 1)
        verdict = host.serve(lambda _: None).state.verdict
        return verdict.exit_code if verdict else StoreError.exit_code


def _wait_for_other(folder: RunFolder) -> int:
    end = time.monotonic() + _FOUND_S
    while folder.host() is None and folder.remote() is not None and time.monotonic() < end:
        time.sleep(0.05)
    print(json.dumps({"ok": True}), flush=True)
    return 0


def _end(folder: RunFolder, message: str) -> None:
    """Nothing is left of the run to be looked after."""
    snapshot = folder.snapshot()
    if snapshot is not None and snapshot.state.verdict is None:
        state = snapshot.state.ended(Verdict(BROKEN, message), time.time(), 0.0)
        folder.write_snapshot(Snapshot(state, snapshot.members, snapshot.beats))
    folder.forget_remote()
