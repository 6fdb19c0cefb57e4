from __future__ import annotations

import json

import pytest

from tests.support.runs import Folder

JOB = "name: a\ncommand: python train.py\nimage: x:1\nroles: {worker: 2}\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "job").mkdir()
    (tmp_path / "job" / "job.yaml").write_text(JOB)
    return Folder(tmp_path, {"KUBECONFIG": str(tmp_path / "none")})


@pytest.mark.parametrize(("operator", "kind"), [("tfjob", "TFJob"), ("none", "Service"), ("auto", "Service")])
def test_the_way_on_kubernetes_can_be_said_on_the_command_line(folder, operator, kind):
    done = folder.yurt("render", "job/job.yaml", "--on", "kubernetes", "--operator", operator)
    assert done.returncode == 0, done.stderr
    kinds = [each["kind"] for each in json.loads(done.stdout)["objects"]]
    assert kind in kinds
    assert ("TFJob" in kinds) == (operator == "tfjob")


def test_elsewhere_it_means_nothing_and_is_refused(folder):
    done = folder.yurt("render", "job/job.yaml", "--operator", "tfjob")
    assert done.returncode == 2
    assert "--operator tfjob is for runs on Kubernetes" in done.stderr
