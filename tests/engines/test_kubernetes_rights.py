"""Runs by an account that has the least rights which the documentation lists, and by one that has one fewer."""

from __future__ import annotations

import json

import pytest

from tests.cli.conftest import folder  # noqa: F401 - a fixture
from tests.engines.test_kubernetes_ground import as_account, prepared, without  # noqa: F401 - a fixture
from yurt.engines.kubernetes import kinds
from yurt.engines.kubernetes.prepare import rights

NEEDED = [(right, verb) for right in rights.OF_USERS if right.always for verb in right.verbs if verb != "watch"]
NEEDED += [(right, "create") for right in rights.OF_OPERATOR_USERS if "create" in right.verbs]
WORDS = "import os; print('trained as', os.environ['YURT_INDEX'])"


@pytest.fixture
def by_robot(kubernetes_cluster, prepared, folder, tmp_path):  # noqa: F811
    """Runs a job of two tasks as the account robot: how it ended."""
    kubeconfig = as_account(kubernetes_cluster, prepared, "robot", tmp_path / "robot")
    folder.environment["KUBECONFIG"] = str(kubeconfig)

    def run(way="none"):
        job = {
            "name": "tiny",
            "image": kubernetes_cluster.python_image,
            "strategy": "multi-worker-mirrored",
            "command": ["python3", "train.py"],
            "roles": {"worker": {"replicas": 2}},
            "engines": {"kubernetes": {"namespace": prepared, "operator": way}},
        }
        return folder.yurt("run", folder.write(job, train=WORDS), "--on", "kubernetes", timeout_s=90)

    return run


def left(cluster, namespace):
    return cluster.kubectl("get", "jobs,services,secrets,tfjobs", "-n", namespace, "-o", "name").split()


@pytest.mark.parametrize("way", ["none", "tfjob"])
def test_the_least_rights_are_enough(training_operator, prepared, by_robot, way):  # noqa: F811
    done = by_robot(way)
    assert done.returncode == 0, done.stdout + done.stderr
    for index in range(2):
        assert f"worker/{index} | trained as {index}" in done.stdout
    assert left(training_operator, prepared) == []


def test_with_one_fewer_the_run_says_which_is_missing(training_operator, prepared, by_robot):  # noqa: F811
    for right, verb in NEEDED:
        with without(training_operator, prepared, right, verb):
            done = by_robot("tfjob" if right.kind is kinds.TFJOB else "none")
        told = f"{verb} {right.resource}: {json.dumps(done.stdout + done.stderr)}"
        assert done.returncode == 6, told
        assert f"may not {verb} {right.resource} in the namespace {prepared}" in done.stderr, told
        assert "`yurt kubernetes prepare` makes one" in done.stderr, told
        training_operator.kubectl("delete", "jobs", "--all", "-n", prepared, "--wait=false")
