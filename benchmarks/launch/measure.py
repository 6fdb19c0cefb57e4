"""Runs one command and says what it cost: wall time, CPU time of all it started, what others used meanwhile."""

from __future__ import annotations

import ctypes
import json
import os
import platform
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

_PR_SET_CHILD_SUBREAPER: Final = 36
_TICKS: Final = os.sysconf("SC_CLK_TCK")
#: Seconds that what a command left behind has to end by itself before it is killed.
_LEAVE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class Cost:
    """`wall_s` to the command's exit; `cpu_s` (user and system) of it and all that it started, stragglers too.

    `whole` tells whether a control group counted the CPU time; else processes that nobody waited for are missing.
    `other_cpu_s` is what the rest of the machine used between start and exit; `left` counts processes that were
    still there after the exit. `started` and `ended` are Unix times. `code` is None where the time ran out.
    """

    started: float
    ended: float
    cpu_s: float
    whole: bool
    other_cpu_s: float
    left: int
    code: int | None

    @property
    def wall_s(self) -> float:
        """Seconds from the start of the command to its exit."""
        return self.ended - self.started


def run(
    command: Sequence[str],
    *,
    environment: Mapping[str, str],
    folder: Path,
    log: Path,
    within_s: float,
    meanwhile: Callable[[int], None] | None = None,
) -> Cost:
    """Run a command to its end, its output to a file; `meanwhile` is called with its process id.

    Descendants that outlive their parent come to this process, so their CPU time is counted and none is left.
    """
    adopt_orphans()
    group = Group()
    busy = machine_busy_s()
    with log.open("wb") as out:
        started = time.time()
        process = subprocess.Popen(
            command,
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=group.enter,  # noqa: PLW1509 - this program has one thread here
        )
    if meanwhile:
        meanwhile(process.pid)
    code, reaped_s, ended = _wait(process, started + within_s)
    busy = machine_busy_s() - busy
    left, late_s = _end_rest()
    counted_s = group.close()
    used_s = reaped_s + late_s if counted_s is None else counted_s
    return Cost(started, ended, used_s, counted_s is not None, max(0.0, busy - used_s), left, code)


class Group:
    """A control group (version 2) that counts the CPU time of one command, where this user may make one."""

    def __init__(self) -> None:
        self._path: Path | None = None
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines() if " cgroup2 " in line]
        own = [line[3:] for line in Path("/proc/self/cgroup").read_text().splitlines() if line.startswith("0::")]
        if not mounts or not own:
            return
        path = Path(mounts[0] + own[0], f"yurt-benchmark-{os.getpid()}")
        try:
            path.mkdir()
        except OSError:
            return
        self._path = path

    def enter(self) -> None:
        """Called in the child before it executes the command."""
        if self._path:
            (self._path / "cgroup.procs").write_text(str(os.getpid()))

    def close(self) -> float | None:
        """The CPU seconds of all that was ever in it, or None."""
        if not self._path:
            return None
        rows = dict(line.split() for line in (self._path / "cpu.stat").read_text().splitlines())
        self._path.rmdir()
        return int(rows["usage_usec"]) / 1e6


def adopt_orphans() -> None:
    """Whatever loses its parent among our descendants becomes our child (Linux)."""
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _wait(process: subprocess.Popen[bytes], deadline: float) -> tuple[int | None, float, float]:
    """Exit code, CPU seconds of all that was reaped, time of the exit."""
    cpu_s, timed_out = 0.0, False
    while True:
        pid, status, usage = os.wait4(-1, os.WNOHANG)
        if pid:
            cpu_s += usage.ru_utime + usage.ru_stime
        if pid == process.pid:
            process.returncode = os.waitstatus_to_exitcode(status)  # it is reaped: Popen must not wait for it again
            return (None if timed_out else process.returncode), cpu_s, time.time()
        if not timed_out and time.time() > deadline:
            timed_out = True
            process.kill()
        if not pid:
            time.sleep(0.002)


def _end_rest() -> tuple[int, float]:
    """Wait for what is left below this process, then kill it: how many there were, their CPU seconds."""
    left = len(descendants(os.getpid()))
    end, cpu_s = time.monotonic() + _LEAVE_S, 0.0
    while True:
        try:
            pid, _, usage = os.wait4(-1, os.WNOHANG)
        except ChildProcessError:
            return left, cpu_s
        if pid:
            cpu_s += usage.ru_utime + usage.ru_stime
            continue
        if time.monotonic() > end:
            for each in descendants(os.getpid()):
                try:
                    os.kill(each, signal.SIGKILL)
                except OSError:
                    pass
        time.sleep(0.01)


def descendants(pid: int) -> list[int]:
    """All below a process, the nearest first."""
    found: list[int] = []
    waiting = [pid]
    while waiting:
        below = children(waiting.pop(0))
        found += below
        waiting += below
    return found


def children(pid: int) -> list[int]:
    """Those that a process's threads have started."""
    found: list[int] = []
    for file in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += [int(word) for word in file.read_text().split()]
        except OSError:
            continue
    return found


def cpu_s(pid: int) -> float:
    """User and system time of one process so far, without its children's."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def machine_busy_s() -> float:
    """CPU seconds that the whole machine has used since its start."""
    fields = [int(word) for word in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / _TICKS


def marks(folder: Path) -> list[dict[str, Any]]:
    """What the two workers wrote of themselves."""
    return [json.loads(file.read_text()) for file in sorted(folder.glob("worker-*.json"))]


def machine() -> dict[str, Any]:
    """What it was measured on."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        platform.machine(),
    )
    return {
        "cpus": len(os.sched_getaffinity(0)),
        "cpu": model,
        "python": platform.python_version(),
        "kernel": platform.release(),
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30),
        "load_before": round(os.getloadavg()[0], 2),
    }


def write_between(file: Path, name: str, text: str) -> None:
    """Replace what stands in a Markdown file between ``<!-- name -->`` and ``<!-- /name -->``."""
    whole = file.read_text(encoding="utf-8")
    start, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    before, _, rest = whole.partition(start)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{file} has no {start} ... {end}")
    file.write_text(f"{before}{start}\n{text.strip()}\n{end}{after}", encoding="utf-8")


def fresh(path: Path) -> Path:
    """An empty folder."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path
