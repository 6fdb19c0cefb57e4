"""A real Kubernetes for tests: the cluster that KUBECONFIG names, else one of this test run's own, for all its tests.

As pytest's plugin (see tests/conftest.py) it gives the fixtures `kubernetes_cluster`, `training_operator` and
`kubernetes_namespace`. On a cluster of somebody's own nothing is killed: tests that would do that are skipped by name. Such a
cluster needs the two test images on its nodes: ``python -m tests.support.kubernetes images FOLDER`` writes them as files.
YURT_TEST_RIG names a rig that is up already (``python -m tests.support.kubernetes --name NAME up``): tests come to it at once,
and leave it up.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.kubernetes import operator
from tests.support.kubernetes.missing import missing
from tests.support.kubernetes.python_image import PYTHON, TENSORFLOW
from tests.support.kubernetes.rig import Rig, sweep
from tests.support.runs import wait_until


@dataclass(frozen=True)
class KubernetesCluster:
    """A cluster that answers. `rig`: what it is on, where it is the tests' own."""

    kubeconfig: Path
    rig: Rig | None = None

    #: Images on every node: Python alone, and with TensorFlow.
    python_image = PYTHON
    tensorflow_image = TENSORFLOW

    @property
    def environment(self) -> Mapping[str, str]:
        return {"KUBECONFIG": str(self.kubeconfig)}

    def kubectl(self, *words: object, content: Mapping[str, Any] | None = None) -> str:
        """What it prints. `content` is an object for ``-f -``. Raises RuntimeError with its message."""
        binary = self.rig.control.binaries.part("kubectl") if self.rig else "kubectl"
        done = subprocess.run(
            [str(binary), "--kubeconfig", str(self.kubeconfig), *map(str, words)],
            input=None if content is None else json.dumps(content),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    def get(self, *words: object) -> dict[str, Any]:
        """An object, or a list of them, as `kubectl get` shows it."""
        found: dict[str, Any] = json.loads(self.kubectl("get", *words, "-o", "json"))
        return found

    @property
    def nodes(self) -> list[str]:
        """Those that are ready."""
        return sorted(
            node["metadata"]["name"]
            for node in self.get("nodes")["items"]
            if any(each["type"] == "Ready" and each["status"] == "True" for each in node["status"]["conditions"])
        )

    @property
    def this_machine(self) -> str:
        """The address at which pods reach servers of this machine; skips the test where nobody knows whether they do."""
        return self.own.control.link.machine

    @property
    def own(self) -> Rig:
        """The rig, for what is done to no other cluster; skips the test where it is somebody's own."""
        if self.rig is None:
            pytest.skip("KUBECONFIG names a cluster that is not the tests' own: nothing of it is stopped or killed")
        return self.rig

    @contextmanager
    def dead_node(self, number: int) -> Iterator[str]:
        """Its name; it is dead, and NotReady, as long as this lasts."""
        rig, name = self.own, f"node{number}"
        rig.kill_node(number)
        try:
            wait_until(lambda: name not in self.nodes, 60, f"{name} to be NotReady")
            yield name
        finally:
            rig.revive_node(number)

    @contextmanager
    def no_operator(self) -> Iterator[None]:
        """The training operator is stopped as long as this lasts."""
        control = self.own.control
        operator.stop(control.kubectl)
        try:
            yield
        finally:
            operator.start(control.kubectl)


@pytest.fixture(scope="session")
def kubernetes_cluster() -> Iterator[KubernetesCluster]:
    """One for the whole test run; skips, by name of what is missing, where there is none and none can be raised."""
    if os.environ.get("KUBECONFIG"):
        if shutil.which("kubectl") is None:
            pytest.skip("KUBECONFIG is set but there is no kubectl on PATH")
        cluster = KubernetesCluster(Path(os.environ["KUBECONFIG"]))
        try:
            cluster.kubectl("get", "--raw", "/readyz", "--request-timeout=10s")
        except RuntimeError as error:
            pytest.skip(f"the cluster that KUBECONFIG names does not answer: {error}")
        yield cluster
        return
    if name := os.environ.get("YURT_TEST_RIG"):
        raised = Rig(name)
        raised.check_up()
        yield KubernetesCluster(raised.kubeconfig, raised)
        return
    if lacking := missing():
        pytest.skip(f"no KUBECONFIG, and {lacking}")
    sweep()
    rig = Rig(f"tests-{os.getpid()}")
    rig.up(2, owner=os.getpid())
    try:
        yield KubernetesCluster(rig.kubeconfig, rig)
    finally:
        rig.down()


@pytest.fixture(scope="session")
def training_operator(kubernetes_cluster: KubernetesCluster) -> KubernetesCluster:
    """The cluster, with the training operator: TFJobs run on it."""
    if "tfjobs.kubeflow.org" in kubernetes_cluster.kubectl("get", "crd", "-o", "name"):
        return kubernetes_cluster
    if kubernetes_cluster.rig is None:
        pytest.skip("the cluster that KUBECONFIG names has no training operator")
    kubernetes_cluster.rig.install_operator()
    return kubernetes_cluster


@pytest.fixture
def kubernetes_namespace(kubernetes_cluster: KubernetesCluster) -> Iterator[str]:
    """A namespace of the test's own. Nothing may run in it when the test ends; then it is deleted."""
    name = f"yurt-test-{secrets.token_hex(4)}"
    kubernetes_cluster.kubectl("create", "namespace", name)
    try:
        kubernetes_cluster.kubectl("wait", "--for=create", "serviceaccount/default", "-n", name, "--timeout=30s")
        yield name
        running = _running(kubernetes_cluster, name)
        assert running == [], "nothing runs any more"
    finally:
        kubernetes_cluster.kubectl("delete", "namespace", name, "--wait=false")


def _running(cluster: KubernetesCluster, namespace: str) -> list[str]:
    """Pods that are neither over nor on their way out."""
    return [
        pod["metadata"]["name"]
        for pod in cluster.get("pods", "-n", namespace)["items"]
        if pod["status"].get("phase") not in ("Succeeded", "Failed") and "deletionTimestamp" not in pod["metadata"]
    ]
