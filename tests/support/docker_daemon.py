"""A Docker daemon for tests: one of this test run's own where that can be had, else the one that is there."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest


@dataclass
class DockerDaemon:
    """A daemon that answers, and what is in it."""

    address: str | None
    folder: Path | None = None  # of our own one
    process: subprocess.Popen[bytes] | None = None

    @property
    def environment(self) -> dict[str, str]:
        return {"DOCKER_HOST": self.address} if self.address else {}

    @property
    def socket(self) -> Path:
        return Path((self.address or "unix:///var/run/docker.sock").removeprefix("unix://"))

    def docker(self, *words: str) -> str:
        """The command line's answer."""
        done = subprocess.run(
            ["docker", *words], env={**os.environ, **self.environment}, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def answers(self) -> bool:
        done = subprocess.run(
            ["docker", "version"], env={**os.environ, **self.environment}, capture_output=True, check=False, timeout=30
        )
        return done.returncode == 0

    def containers(self, run_id: str, *words: str) -> list[str]:
        """Names of a run's running containers; with ``-a`` of the ended ones too."""
        found = self.docker("ps", *words, "--filter", f"label=yurt.run={run_id}", "--format", "{{.Names}}")
        return sorted(found.split())

    def networks(self, run_id: str) -> list[str]:
        return self.docker("network", "ls", "--filter", f"label=yurt.run={run_id}", "--format", "{{.Name}}").split()

    def inspect(self, container: str) -> dict[str, Any]:
        return json.loads(self.docker("inspect", container))[0]

    def start(self) -> None:
        """Start our own one, and wait until it answers."""
        assert self.folder
        options = ["--data-root", self.folder / "data", "--exec-root", self.folder / "exec", "--bridge", "none"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["dockerd", "-H", str(self.address), "--pidfile", self.folder / "pid", *options], stdout=log, stderr=log
            )
        end = time.monotonic() + 40
        while not self.answers():
            if self.process.poll() is not None or time.monotonic() > end:
                last = (self.folder / "log").read_text(errors="replace").strip().rpartition("\n")[2]
                pytest.skip(f"dockerd does not come up here: {last[-300:]}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End our own one; its containers end with it."""
        assert self.process
        if self.process.poll() is not None:
            return
        self.process.terminate()
        try:
            self.process.wait(40)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def leave(self) -> None:
        """End our own one for good, with what it would leave: bridges of networks, mounts in its folder."""
        if self.answers():
            self.docker("network", "prune", "-f")
        self.stop()
        mounted = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for place in sorted((each for each in mounted if each.startswith(f"{self.folder}/")), reverse=True):
            subprocess.run(["umount", "-l", place], check=False)


@contextmanager
def some_daemon() -> Iterator[DockerDaemon]:
    """One of our own, for root with dockerd on PATH; else the one that answers; else the tests are skipped."""
    if shutil.which("docker") is None:
        pytest.skip("no docker on PATH")
    if os.getuid() == 0 and shutil.which("dockerd"):
        folder = Path(tempfile.mkdtemp(prefix="yurt-docker-"))  # a short path: sockets have no room for a long one
        own = DockerDaemon(f"unix://{folder}/docker.sock", folder)
        try:
            own.start()
            yield own
        finally:
            own.leave()
            shutil.rmtree(folder)
        return
    theirs = DockerDaemon(os.environ.get("DOCKER_HOST"))
    if not theirs.answers():
        pytest.skip("no Docker daemon answers, and none can be started here")
    yield theirs
