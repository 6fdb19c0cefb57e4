"""Gangs of two workers as a person starts them, on this machine or on a cluster, and when what happened."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.support.docker_image import PACKAGES
from tests.support.runs import Folder, Run, wait_until
from yurt.cluster.dev import DevCluster
from yurt.engines.nomad.address import from_environment
from yurt.engines.nomad.client import NomadClient

SCRIPT = Path(__file__).with_name("train.py")
TASKS = ("worker/0", "worker/1")
LOCAL = "local"
#: Where tasks of the driver exec see their Python environment.
EXEC_PYTHON = "/opt/tf"
WITHIN_S = 180.0


@dataclass
class Gang:
    """A run under way; `began` is the moment before `yurt run` was started."""

    engine: str
    run: Run
    began: float
    marks: Path

    def moments(self, task: str, generation: int) -> dict[str, float]:
        file = self.marks / f"{task.replace('/', '-')}.{generation}.json"
        return json.loads(file.read_text()) if file.exists() else {}

    def first_step(self, generation: int, task: str = TASKS[0]) -> float:
        """When the deciding task had finished its first step; waits for it."""
        return wait_until(lambda: self.moments(task, generation).get("step"), WITHIN_S, f"step 1 of {generation}")

    def next_step(self, generation: int) -> tuple[int, float]:
        """The generation after this one that trains, and when: a lost node can cost two."""

        def found() -> tuple[int, float] | None:
            steps = (
                (later, self.moments(TASKS[0], later).get("step")) for later in range(generation + 1, generation + 9)
            )
            return next(((later, step) for later, step in steps if step), None)

        return wait_until(found, WITHIN_S, f"a step after generation {generation}")

    def all_train(self, generation: int) -> None:
        for task in TASKS:
            self.first_step(generation, task)
        wait_until(lambda: self.run.state()["phase"] == "running", WITHIN_S, "the record of it")

    def cause(self, generation: int) -> dict[str, Any]:
        """Why the gang went on from this generation, and when that was seen."""
        return wait_until(
            lambda: next((c for c in self.run.state()["causes"] if c["generation"] == generation), None), 60, "a cause"
        )

    def pid(self, task: str) -> int:
        return self.run.member(task)["pid"]

    def agent(self, task: str) -> int:
        return int(Path(f"/proc/{self.pid(task)}/stat").read_text().rpartition(")")[2].split()[1])


@dataclass
class Bench:
    """A person's folder and their cluster; `image` is for the driver docker, `store` another Consul than that one's."""

    path: Path
    cluster: DevCluster
    image: str = ""
    store: str = ""
    _gangs: int = 0

    @property
    def folder(self) -> Folder:
        other = {"CONSUL_HTTP_ADDR": self.store} if self.store else {}
        return Folder(self.path, {**self.cluster.environment, **other})

    @contextmanager
    def gang(self, engine: str, **job: Any) -> Iterator[Gang]:
        """Started, and ended at once when it is left."""
        self._gangs += 1
        marks = self.path / f"marks-{self._gangs}"
        marks.mkdir(parents=True)
        marks.chmod(0o777)  # exec's tasks run as nobody
        content = {
            "name": "bench",
            "command": "python3 train.py",
            "roles": {"worker": 2},
            "env": {"BENCH_MARKS": str(marks)},
            "restart": "on-failure",
            "max_restarts": 100,
            "grace": 1,
            "start_deadline": 120,
            **self._place(engine),
            **job,
        }
        file = self.folder.write(content, train=SCRIPT.read_text())
        arguments = [] if engine == LOCAL else ["--on", "nomad"]
        began = time.time()
        gang = Gang(engine, self.folder.start(file, *arguments), began, marks)
        try:
            yield gang
        finally:
            self.folder.yurt("stop", "--now", gang.run.run_id)
            gang.run.wait()

    def _place(self, engine: str) -> dict[str, Any]:
        """The job's part that the engine decides."""
        seen = {"marks": str(self.path), "packages": PACKAGES}
        if engine == "exec":
            seen["tf"] = EXEC_PYTHON
        volumes = {name: {"source": name, "path": path} for name, path in seen.items()}
        match engine:
            case "raw_exec":
                return {"engines": {"nomad": {"python": sys.executable}}}
            case "exec":
                python = f"{EXEC_PYTHON}/bin/python"
                return {"engines": {"nomad": {"driver": engine, "python": python, "volumes": volumes}}}
            case "docker":
                return {"engines": {"nomad": {"driver": engine, "volumes": volumes}}, "image": self.image}
        return {}

    def nomad(self, *arguments: str) -> None:
        environment = {**os.environ, **self.folder.environment}
        subprocess.run(["nomad", *arguments], env=environment, check=True, capture_output=True)

    @property
    def client(self) -> NomadClient:
        return NomadClient(from_environment(self.cluster.environment))


def end(*pids: int) -> float:
    """Kill all at once; the moment before."""
    now = time.time()
    for pid in pids:
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it died with another of them
    return now


def job_moments(client: NomadClient, run_id: str) -> Mapping[str, float]:
    """What Nomad noted, in Unix time: when it had the job, and when the last of its tasks was started."""
    job = client.job(run_id)
    starts = [each["TaskStates"]["agent"]["StartedAt"] for each in client.allocations(run_id)[0]]
    return {"submitted": job["SubmitTime"] / 1e9, "started": max(map(_unix, starts))}


def _unix(text: str) -> float:
    whole, _, rest = text.removesuffix("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + float(f"0.{rest or 0}")
