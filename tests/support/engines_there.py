"""Every engine that is really there, behind one face: how a job is written for it, and how to reach into its tasks."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from tests.support import docker_image
from tests.support.cluster import client, raised
from tests.support.docker_daemon import DockerDaemon, some_daemon
from tests.support.flaky_s3 import MotoS3, environment
from tests.support.kubernetes_cluster import KubernetesCluster
from tests.support.runs import Run, wait_until
from yurt.cluster.dev import DevCluster


@dataclass(frozen=True)
class Shelf:
    """Where models are published so that the test can see them. `read` gives a run's ``model.txt``."""

    output: str
    env: Mapping[str, str]
    read: Callable[[str], str]


@dataclass(frozen=True)
class Local:
    """Processes of this machine."""

    name: ClassVar[str] = "local"

    @property
    def environment(self) -> Mapping[str, str]:
        return {}

    @property
    def values(self) -> Mapping[str, Any]:
        """What a job says for this engine alone."""
        return {}

    def inside(self, run: Run, task: str, line: str) -> None:
        """A line of shell where the task's process is."""
        subprocess.run(["sh", "-c", line], check=True)

    @contextmanager
    def shelf(self, folder: Path) -> Iterator[Shelf]:
        yield Shelf(f"file://{folder}/models", {}, lambda run: (folder / "models" / run / "model.txt").read_text())

    def left(self) -> list[str]:
        """What is there of any run."""
        return []


@dataclass(frozen=True)
class Docker(Local):
    """Containers of a daemon."""

    daemon: DockerDaemon
    image: str
    name: ClassVar[str] = "docker"

    @property
    def environment(self) -> Mapping[str, str]:
        return self.daemon.environment

    @property
    def values(self) -> Mapping[str, Any]:
        return {"image": self.image}

    def inside(self, run: Run, task: str, line: str) -> None:
        self.daemon.docker("exec", f"{run.run_id}-{task.replace('/', '-')}", "sh", "-c", line)

    def left(self) -> list[str]:
        found = ("--filter", "label=yurt.run", "--format", "{{.ID}}")
        return self.daemon.docker("ps", "-a", *found).split() + self.daemon.docker("network", "ls", *found).split()


@dataclass(frozen=True)
class Nomad(Local):
    """Allocations of a cluster whose nodes are this machine."""

    cluster: DevCluster
    name: ClassVar[str] = "nomad"

    @property
    def environment(self) -> Mapping[str, str]:
        return dict(self.cluster.environment)

    @property
    def values(self) -> Mapping[str, Any]:
        return {"engines": {"nomad": {"python": sys.executable}}}

    def left(self) -> list[str]:
        return [job["ID"] for job in client(self.cluster).jobs() if job["Status"] != "dead"]


@dataclass(frozen=True)
class Kubernetes(Local):
    """Pods of a namespace, by way of ``none`` or ``tfjob``."""

    cluster: KubernetesCluster
    namespace: str
    way: str
    name: ClassVar[str] = "kubernetes"

    @property
    def environment(self) -> Mapping[str, str]:
        return self.cluster.environment

    @property
    def values(self) -> Mapping[str, Any]:
        options = {"namespace": self.namespace, "operator": self.way}
        return {"image": self.cluster.python_image, "engines": {"kubernetes": options}}

    def inside(self, run: Run, task: str, line: str) -> None:
        pod = str((run.member(task) or {})["placed_on"]).rpartition("/")[2]
        self.cluster.kubectl("exec", "-n", self.namespace, pod, "-c", "tensorflow", "--", "sh", "-c", line)

    @contextmanager
    def shelf(self, folder: Path) -> Iterator[Shelf]:
        """A bucket: the pods share no folder with the test."""
        with MotoS3(self.cluster.this_machine) as s3:
            s3.make_bucket("models")

            def read(run: str) -> str:
                return s3.objects("models")[f"contract/{run}/model.txt"].decode()

            yield Shelf("s3://models/contract", environment(s3.url), read)

    def left(self) -> list[str]:
        kinds = "pods,jobs,services,secrets,configmaps" + (",tfjobs" if self.way == "tfjob" else "")
        found = self.cluster.kubectl("get", kinds, "-n", self.namespace, "-o", "name").split()
        return sorted(set(found) - {"configmap/kube-root-ca.crt"})


@contextmanager
def _local(_: pytest.FixtureRequest) -> Iterator[Local]:
    yield Local()


@contextmanager
def _docker(_: pytest.FixtureRequest) -> Iterator[Local]:
    with some_daemon() as daemon:
        yield Docker(daemon, docker_image.image(daemon.environment))


@contextmanager
def _nomad(_: pytest.FixtureRequest) -> Iterator[Local]:
    for cluster in raised(3):
        yield Nomad(cluster)


@contextmanager
def _kubernetes(request: pytest.FixtureRequest) -> Iterator[Local]:
    way = request.param.rpartition("-")[2]
    cluster = request.getfixturevalue("training_operator" if way == "tfjob" else "kubernetes_cluster")
    namespace = f"yurt-contract-{secrets.token_hex(3)}"
    cluster.kubectl("create", "namespace", namespace)
    try:
        yield Kubernetes(cluster, namespace, way)
    finally:
        cluster.kubectl("delete", "namespace", namespace, "--wait=false")


#: The engines by name; opened with a fixture's request whose `param` is the name, each skips by name what it lacks.
ENGINES: Mapping[str, Callable[[pytest.FixtureRequest], Any]] = {
    "local": _local,
    "docker": _docker,
    "nomad": _nomad,
    "kubernetes-none": _kubernetes,
    "kubernetes-tfjob": _kubernetes,
}


def assert_nothing_left(there: Local, run: Run) -> None:
    """Neither processes of the run on this machine, nor anything on the engine."""
    run.assert_nothing_left(within_s=10)
    wait_until(lambda: not there.left(), 40, "the end of all that the run had")


def forget(file: str) -> None:
    """Remove what a task on this machine was told by."""
    if os.path.exists(file):
        os.remove(file)
