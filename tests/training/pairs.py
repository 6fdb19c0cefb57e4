"""Starts scripts as tasks of a cluster with the hook first on PYTHONPATH, and reads the cases they print."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yurt

HOOK = Path(yurt.__file__).parent / "training" / "hook"
SCRIPTS = Path(__file__).parent / "scripts"


@dataclass(frozen=True)
class Ended:
    """What a process left."""

    code: int
    output: str
    errors: str

    def cases(self) -> dict[str, dict[str, Any]]:
        told = (json.loads(line[5:]) for line in self.output.splitlines() if line.startswith("CASE "))
        return {case["name"]: case for case in told}


def ports(count: int) -> list[int]:
    held = [socket.socket() for _ in range(count)]
    for each in held:
        each.bind(("127.0.0.1", 0))
    found = [each.getsockname()[1] for each in held]
    for each in held:
        each.close()
    return found


def environment(**changes: str) -> dict[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TF_", "YURT_", "PYTHON"))}
    return {
        **kept,
        "PYTHONPATH": str(HOOK),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TF_CPP_MIN_LOG_LEVEL": "2",
        "TF_NUM_INTRAOP_THREADS": "1",
        "TF_NUM_INTEROP_THREADS": "2",
        **changes,
    }


def start(script: str | Path, folder: Path, **changes: str) -> subprocess.Popen[str]:
    folder.mkdir(parents=True, exist_ok=True)
    return subprocess.Popen(
        [sys.executable, str(SCRIPTS / script)],
        cwd=folder,
        env=environment(**changes),
        stdin=subprocess.DEVNULL,
        stdout=(folder / "out").open("w"),
        stderr=(folder / "err").open("w"),
        text=True,
    )


def finish(processes: Sequence[subprocess.Popen[str]], folders: Sequence[Path], timeout_s: float) -> list[Ended]:
    try:
        for process in processes:
            process.wait(timeout_s)
    finally:
        for process in processes:
            process.kill()
            process.wait()
    return [
        Ended(process.returncode, (folder / "out").read_text(), (folder / "err").read_text())
        for process, folder in zip(processes, folders, strict=True)
    ]


def alone(script: str | Path, folder: Path, timeout_s: float = 120, **changes: str) -> Ended:
    """One process, no cluster."""
    return finish([start(script, folder, **changes)], [folder], timeout_s)[0]


def gang(
    script: str | Path,
    folder: Path,
    *,
    roles: Mapping[str, int] | None = None,
    timeout_s: float = 150,
    only: Sequence[str] | None = None,
    **changes: str,
) -> dict[str, Ended]:
    """A process for each task. With `only` the others are ended once these have ended."""
    roles = roles or {"worker": 2}
    free = iter(ports(sum(roles.values())))
    cluster = {role: [f"127.0.0.1:{next(free)}" for _ in range(count)] for role, count in roles.items()}
    started, folders = {}, {}
    for role, addresses in cluster.items():
        for index in range(len(addresses)):
            name = f"{role}-{index}"
            folders[name] = folder / name
            own = {
                "TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": role, "index": index}}),
                "YURT_PROGRESS_FILE": str(folder / name / "progress.json"),
                "SHARED": str(folder / "shared"),
            }
            started[name] = start(script, folders[name], **{**own, **changes})
    (folder / "shared").mkdir(exist_ok=True)
    try:
        for name in only or started:
            started[name].wait(timeout_s)
    finally:
        for name, process in started.items():
            if only and name not in only:
                process.kill()
    ended = finish(list(started.values()), list(folders.values()), 20)
    return dict(zip(started, ended, strict=True))


def close(one: Any, other: Any, relative: float = 2e-5) -> bool:
    """Whether two values of JSON are the same, numbers nearly so: sums of floats come in another order."""
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(close(one[k], other[k]) for k in one)
    if isinstance(one, list):
        return isinstance(other, list) and len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return abs(one - other) <= relative * max(1e-3, abs(one))
    return bool(one == other)
