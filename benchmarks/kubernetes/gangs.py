"""Gangs as a person starts them, by `yurt run` here and on a cluster and by `kubectl apply`, and when what happened."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.support.kubernetes_cluster import KubernetesCluster
from tests.support.runs import Folder, Run, wait_until

TASKS = ("worker/0", "worker/1")
LOCAL, NONE, TFJOB, BY_HAND = "local", "none", "tfjob", "kubectl"
WAYS = (LOCAL, NONE, TFJOB, BY_HAND)
IN_WORDS = {
    LOCAL: "`yurt run`, this machine",
    NONE: "`yurt run --on kubernetes`, Indexed Job",
    TFJOB: "`yurt run --on kubernetes`, TFJob",
    BY_HAND: "`kubectl apply` of the same TFJob",
}
WITHIN_S = 240.0
_TICKS = os.sysconf("SC_CLK_TCK")


class Gang:
    """What is under way; `began` is the moment before its command was started."""

    began: float

    def log(self, task: str) -> str:
        raise NotImplementedError

    def line(self, task: str, generation: int = 0, within_s: float = WITHIN_S) -> float:
        """When this task said its first line in this generation, by its own clock; waits for it."""
        return self.mark("line", task, generation, within_s)

    def mark(self, part: str, task: str, generation: int = 0, within_s: float = WITHIN_S) -> float:
        """The same for how far it came."""
        found = wait_until(lambda: self._marks(task, part).get(generation), within_s, f"{part} of {task}")
        return float(found)

    def next_line(self, task: str, generation: int) -> float:
        """The first line of any later generation."""

        def found() -> float | None:
            return min((at for later, at in self._marks(task).items() if later > generation), default=None)

        return float(wait_until(found, WITHIN_S, f"a line of {task} after generation {generation}"))

    def _marks(self, task: str, part: str = "line") -> dict[int, float]:
        found = re.findall(rf"^mark {part} (\d+) (\S+)$", self.log(task), re.MULTILINE)
        return {int(number): float(at) for number, at in found}


@dataclass
class ByYurt(Gang):
    """`yurt run`."""

    run: Run
    began: float

    def log(self, task: str) -> str:
        return self.run.log(task)

    def all_train(self, generation: int, tasks: Sequence[str] = TASKS) -> None:
        for task in tasks:
            self.line(task, generation)
        wait_until(lambda: self.run.state()["phase"] == "running", WITHIN_S, "the record of it")

    def sent(self) -> float:
        """When the launcher had sent all of the run's objects; called at once, it sees that as it happens."""
        file = self.run.path / "remote.json"
        wait_until(lambda: file.exists() and '"submitted": true' in file.read_text(), 60, "the submission")
        return time.time()

    def cause(self, generation: int) -> dict[str, Any]:
        """Why the gang went on from this generation, and when that was seen."""

        def found() -> dict[str, Any] | None:
            return next((each for each in self.run.state()["causes"] if each["generation"] == generation), None)

        cause: dict[str, Any] = wait_until(found, 60, "a cause")
        return cause


@dataclass
class ByHand(Gang):
    """A TFJob that Yurt has no part in."""

    bench: Bench
    name: str
    began: float

    def log(self, task: str) -> str:
        try:
            return self.bench.cluster.kubectl(
                "logs", "-n", self.bench.namespace, f"{self.name}-{task.replace('/', '-')}"
            )
        except RuntimeError:  # not there yet
            return ""


@dataclass
class Bench:
    """A person's folder, and their namespace in a cluster whose nodes are processes of this machine."""

    path: Path
    cluster: KubernetesCluster
    namespace: str
    _count: int = 0

    @property
    def folder(self) -> Folder:
        return Folder(self.path, self.cluster.environment)

    @contextmanager
    def gang(
        self, way: str, tasks: int = 2, options: dict[str, Any] | None = None, script: str = "prints.py", **job: Any
    ) -> Iterator[Gang]:
        """Started, and ended at once when it is left."""
        self._count += 1
        source = Path(__file__).with_name(script).read_text()
        python = sys.executable if way == LOCAL else "python3"
        content = {
            "name": f"bench{self._count}",
            "command": [python, "-c", source],
            "roles": {"worker": tasks},
            "restart": "on-failure",
            "max_restarts": 100,
            "grace": 1,
            "start_deadline": 300,
            **({} if way == LOCAL else self._place(way, options or {})),
            **job,
        }
        file = self.folder.write(content)
        if way == BY_HAND:
            with self._applied(file) as gang:
                yield gang
            return
        arguments = [] if way == LOCAL else ["--on", "kubernetes"]
        began = time.time()
        started = ByYurt(self.folder.start(file, *arguments), began)
        try:
            yield started
        finally:
            if started.run.process.poll() is None:
                self.folder.yurt("stop", "--now", started.run.run_id)
            started.run.wait()

    def _place(self, way: str, options: dict[str, Any]) -> dict[str, Any]:
        operator = TFJOB if way == BY_HAND else way
        return {
            "image": self.cluster.python_image,
            "engines": {"kubernetes": {"namespace": self.namespace, "operator": operator, **options}},
        }

    @contextmanager
    def _applied(self, job_file: Path) -> Iterator[Gang]:
        file = job_file.with_name(f"tfjob{self._count}.yaml")
        done = self.folder.yurt("convert", "--to", "tfjob", "-o", file, job_file)
        assert done.returncode == 0, done.stderr
        name = f"bench{self._count}"
        began = time.time()
        self.cluster.kubectl("apply", "-n", self.namespace, "-f", file)
        try:
            yield ByHand(self, name, began)
        finally:
            self.cluster.kubectl("delete", "tfjob", name, "-n", self.namespace, "--cascade=foreground")
            wait_until(lambda: not self.pods(f"training.kubeflow.org/job-name={name}"), 60, "the end of its pods")

    def pods(self, labels: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.cluster.get("pods", "-n", self.namespace, "-l", labels)["items"]
        return found

    def keeper_log(self, run_id: str) -> dict[str, float]:
        """What the keeper has said, each with the time at which its node read it."""
        [pod] = self.pods(f"yurt/run={run_id},yurt/role=keeper")
        text = self.cluster.kubectl("logs", "--timestamps", "-n", self.namespace, pod["metadata"]["name"])
        rows = (line.partition(" ") for line in text.splitlines())
        return {said: unix(at) for at, _, said in rows}


def first_process(pod: str) -> int:
    """Of the pod's task container, as this machine numbers it; 0 where there is none."""
    for process in Path("/proc").glob("[0-9]*"):
        try:
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if f"YURT_POD={pod}".encode() in variables and numbers_inside(process)[-1:] == ["1"]:
            return int(process.name)
    return 0


def process_inside(first: int, number: int) -> int:
    """The process that has this number in the container of that first process."""
    space = os.readlink(f"/proc/{first}/ns/pid")
    for process in Path("/proc").glob("[0-9]*"):
        try:
            same = os.readlink(process / "ns/pid") == space
        except OSError:
            continue
        if same and numbers_inside(process)[-1:] == [str(number)]:
            return int(process.name)
    raise LookupError(f"no process {number} in the container of {first}")


def numbers_inside(process: Path) -> list[str]:
    """A process's ids, from this machine's to the innermost one."""
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return []
    return next(line for line in lines if line.startswith("NSpid:")).split()[1:]


def started_at(pid: int) -> float:
    """Unix time, to a hundredth of a second."""
    ticks = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) + ticks / _TICKS


def unix(text: str) -> float:
    """Of ``2026-12-01T14:00:00.123456789Z``."""
    whole, _, rest = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + float(f"0.{rest or 0}")
