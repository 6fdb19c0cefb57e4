"""Runs jobs as a person does, by the command line, and looks at what the run really does."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

YURT = [sys.executable, "-m", "yurt.cli.main"]


def wait_until(true: Callable[[], Any], within_s: float = 60.0, what: str = "what was waited for") -> Any:
    """The first true answer; AssertionError after `within_s` seconds."""
    end = time.monotonic() + within_s
    while not (answer := true()):
        assert time.monotonic() < end, f"{what} did not come within {within_s:g} s"
        time.sleep(0.02)
    return answer


def processes_of(run_id: str) -> list[int]:
    """Every process that belongs to a run, but its launcher in the foreground: tasks, what they started, agents."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            text = b"".join(Path(f"/proc/{entry}/{name}").read_bytes() for name in ("environ", "cmdline"))
            text += os.readlink(f"/proc/{entry}/cwd").encode()  # an agent stands in its task's folder
            state = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if run_id.encode() in text and state != "Z":
            found.append(int(entry))
    return found


def agents_of(run: Run) -> dict[str, int]:
    """The agents of a run by ``worker-0``: processes that stand in their task's folder."""
    found = {}
    for pid in processes_of(run.run_id):
        try:
            place = Path(os.readlink(f"/proc/{pid}/cwd"))
        except OSError:
            continue
        if place.parent.name == "tasks" and "agent-" in Path(f"/proc/{pid}/cmdline").read_text():
            found[place.name] = pid
    return found


@dataclass
class Folder:
    """A place of its own for runs: a job folder, and a home where Yurt keeps them."""

    path: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def home(self) -> Path:
        return self.path / "home"

    def write(self, job: Mapping[str, Any], **files: str) -> Path:
        """Write the job file (JSON is YAML) and the scripts; ``train=...`` becomes train.py."""
        folder = self.path / "job"
        folder.mkdir(exist_ok=True)
        for name, text in files.items():
            (folder / f"{name}.py").write_text(text)
        file = folder / "job.yaml"
        file.write_text(json.dumps(job))
        return file

    def env(self) -> dict[str, str]:
        # pytest-xdist says how large its own terminal is, which is not ours.
        here = {name: value for name, value in os.environ.items() if name not in ("LINES", "COLUMNS")}
        return {**here, "YURT_HOME": str(self.home), **self.environment}

    def yurt(self, *arguments: object, timeout_s: float = 120) -> subprocess.CompletedProcess[str]:
        """A command to its end."""
        return subprocess.run(
            [*YURT, *map(str, arguments)],
            env=self.env(),
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )

    def start(self, job_file: Path, *arguments: str) -> Run:
        """`yurt run` in the background of the test."""
        before = set(self.run_ids())
        output = (self.path / "output.txt").open("wb")
        process = subprocess.Popen(
            [*YURT, "run", str(job_file), *arguments],
            env=self.env(),
            cwd=self.path,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        new = wait_until(lambda: process.poll() is not None or set(self.run_ids()) - before, 60, "the run's record")
        assert new is not True, (self.path / "output.txt").read_text()
        return Run(self, process, new.pop())

    def run_ids(self) -> list[str]:
        folder = self.home / "runs"
        return [each.name for each in folder.iterdir() if (each / "state.json").exists()] if folder.is_dir() else []


@dataclass
class Run:
    """A run under way."""

    folder: Folder
    process: subprocess.Popen[bytes]
    run_id: str

    @property
    def path(self) -> Path:
        return self.folder.home / "runs" / self.run_id

    @property
    def output(self) -> str:
        return (self.folder.path / "output.txt").read_text(errors="replace")

    def snapshot(self) -> dict[str, Any]:
        return json.loads((self.path / "state.json").read_text())

    def state(self) -> dict[str, Any]:
        return self.snapshot()["state"]

    def member(self, task: str) -> dict[str, Any] | None:
        return next((m for m in self.snapshot()["members"] if m["task"] == task), None)

    def log(self, task: str) -> str:
        file = self.path / "tasks" / task.replace("/", "-") / "log"
        return file.read_text(errors="replace") if file.exists() else ""

    def wait_for_phase(self, phase: str, within_s: float = 60, generation: int = 0) -> None:
        wait_until(
            lambda: self.state()["phase"] == phase and self.state()["generation"] >= generation,
            within_s,
            f"phase {phase}",
        )

    def wait_for_line(self, task: str, text: str, within_s: float = 90) -> None:
        wait_until(lambda: text in self.log(task), within_s, f"{text!r} of {task}")

    def pid(self, task: str) -> int:
        """The task's own process."""
        return wait_until(lambda: (self.member(task) or {}).get("pid"), 30, f"the process of {task}")

    def agent_pid(self, task: str) -> int:
        return int(Path(f"/proc/{self.pid(task)}/stat").read_text().rpartition(")")[2].split()[1])

    def kill(self, pid: int, number: int = signal.SIGKILL) -> None:
        os.kill(pid, number)

    def wait(self, within_s: float = 120) -> int:
        return self.process.wait(within_s)

    def assert_nothing_left(self, within_s: float = 5) -> None:
        wait_until(lambda: not processes_of(self.run_id), within_s, "the end of every process")
