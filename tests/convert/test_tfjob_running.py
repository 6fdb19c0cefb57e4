"""TFJob files where a job file is asked for, as a person uses them: real processes on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

SEES = """
import json, os, sys
seen = {"argv": sys.argv[1:], "cluster": json.loads(os.environ["TF_CONFIG"])["cluster"], "env": os.environ.get("MODE")}
print("SEEN " + json.dumps(seen))
"""
TFJOB = """
apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: %(name)s}
spec:
  cleanPodPolicy: None
  tfReplicaSpecs:
    Worker:
      replicas: 2
      restartPolicy: Never
      template:
        spec:
          containers:
          - name: tensorflow
            image: registry.example/x:1
            command: [python, /opt/sees.py, --data=/data, --out=/out/model, $(MODE)]
            env:
            - {name: MODE, value: fast}
            volumeMounts:
            - {name: data, mountPath: /data}
            - {name: out, mountPath: /out}
          volumes:
          - {name: data, persistentVolumeClaim: {claimName: data}}
          - {name: out, emptyDir: {}}
"""


@pytest.fixture
def yurt(tmp_path):
    place = tmp_path / "it's a place"
    place.mkdir()
    (place / "sees.py").write_text(SEES)
    (place / "tfjob.yaml").write_text(TFJOB % {"name": "first"})
    (place / "data").mkdir()

    def run(*arguments, code=0):
        done = subprocess.run(
            [sys.executable, "-m", "yurt.cli.main", *arguments],
            cwd=place,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")},
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done

    run.place = place
    return run


def test_it_runs_as_it_is_on_this_machine(yurt):
    done = yurt("run", "tfjob.yaml", "--volume", "data=data")
    seen = [json.loads(line.partition("SEEN ")[2]) for line in done.stdout.splitlines() if "SEEN " in line]
    assert len(seen) == 2
    assert all(len(one["cluster"]["worker"]) == 2 and one["env"] == "fast" for one in seen)
    data, out, mode = seen[0]["argv"]
    assert data == f"--data={yurt.place / 'data'}"
    assert mode == "fast"
    # an emptyDir is each task's own
    assert {one["argv"][1] for one in seen} == {f"--out={folder}/out/model" for folder in _works(out, seen)}
    told = done.stderr
    assert "tfjob.yaml:6:3: spec.cleanPodPolicy: belongs under spec.runPolicy: kubectl refuses it here" in told
    assert "runs /opt/sees.py, which this machine does not have: sees.py beside the file is run" in told
    assert "registry.example/x:1 is not used on this machine" in told


def _works(out, seen):
    folders = {one["argv"][1].removeprefix("--out=").removesuffix("/out/model") for one in seen}
    assert len(folders) == 2
    assert all(folder.startswith("/") for folder in folders)
    return folders


def test_what_changes_the_meaning_is_refused(yurt):
    done = yurt("run", "tfjob.yaml", code=2)
    assert done.stderr == (
        "yurt: tfjob.yaml:23:13: spec.tfReplicaSpecs.Worker.template.spec.volumes[0]: persistentVolumeClaim data, which "
        "the task sees at /data, is not on this machine\n"
        "      name a folder that holds the same: --volume data=FOLDER\n"
    )
    assert yurt("check", "tfjob.yaml", "--volume", "dat=data", code=2).stderr.startswith(
        "yurt: --volume dat: the volumes are data, out"
    )
    assert (
        "--volume data: nowhere is no folder" in yurt("check", "tfjob.yaml", "--volume", "data=nowhere", code=2).stderr
    )


def test_check_and_render_take_it_too(yurt):
    assert "first can start on this machine: 2 tasks" in yurt("check", "tfjob.yaml", "--volume", "data=data").stdout
    request = json.loads(yurt("render", "tfjob.yaml", "--on", "docker", "--volume", "data=data").stdout)
    mounts = request["agents"][0]["container"]["HostConfig"]["Mounts"]
    assert {"/data"} == {mount["Target"] for mount in mounts if mount["Source"] == str(yurt.place / "data")}


def test_in_kubernetes_nothing_of_it_is_missing(yurt):
    from pathlib import Path

    from yurt.cli.common import load

    job = load(Path(yurt.place / "tfjob.yaml"), engine="kubernetes").job
    assert job.engines["kubernetes"]["prefer_tfjob"] is True
    assert job.command_for(next(iter(job.roles)))[:2] == ("python", "/opt/sees.py")
    assert job.files == ()


def test_one_of_several(yurt):
    both = TFJOB % {"name": "first"} + "---" + TFJOB % {"name": "second"}
    (yurt.place / "both.yaml").write_text(both)
    done = yurt("check", "both.yaml", code=2)
    assert done.stderr == "yurt: both.yaml holds 2 TFJobs: first, second\n      say which one with --job NAME\n"
    done = yurt("check", "both.yaml", "--job", "second", "--volume", "data=data")
    assert done.stdout.startswith("second can start")
    assert "third; it has first, second" in yurt("check", "both.yaml", "--job", "third", code=2).stderr


def test_what_the_image_starts_can_be_said(yurt):
    text = (TFJOB % {"name": "first"}).replace("command: [python, /opt/sees.py, ", "args: [")
    (yurt.place / "tfjob.yaml").write_text(text)
    arguments = ("tfjob.yaml", "--volume", "data=data")
    refused = yurt("check", *arguments, code=2).stderr
    assert "has args and no command, and what registry.example/x:1 starts is not known here" in refused
    assert "first can start" in yurt("check", *arguments, "--entrypoint", "python sees.py").stdout
    assert "--entrypoint holds" in yurt("check", *arguments, "--entrypoint", "a | b", code=2).stderr


def test_variables_of_the_command_line(yurt):
    text = (TFJOB % {"name": "first"}).replace("value: fast", "valueFrom: {secretKeyRef: {name: s, key: mode}}")
    (yurt.place / "tfjob.yaml").write_text(text)
    arguments = ("tfjob.yaml", "--volume", "data=data")
    done = yurt("run", *arguments, code=2)
    assert "MODE is mode of the secret s, which is in a cluster\n      give it with `--env MODE=VALUE`" in done.stderr
    done = yurt("run", *arguments, "--env", "MODE=given")
    seen = json.loads(next(line for line in done.stdout.splitlines() if "SEEN" in line).partition("SEEN ")[2])
    assert seen["env"] == seen["argv"][2] == "given"


def test_its_options_are_for_its_files(yurt):
    (yurt.place / "job.yaml").write_text("name: a\ncommand: sees.py\n")
    for option in (["--job", "x"], ["--volume", "data=data"], ["--entrypoint", "python"]):
        assert yurt("check", "job.yaml", *option, code=2).stderr == (
            f"yurt: {option[0]} is for a TFJob's file, and job.yaml is a job file\n"
        )


def test_convert_in_and_out(yurt):
    yurt("convert", "tfjob.yaml", "-o", "job.yaml")
    text = (yurt.place / "job.yaml").read_text()
    assert "name: first\n" in text
    assert "persistentVolumeClaim: {claimName: data}" in text
    done = yurt("convert", "job.yaml", "--to", "tfjob")
    assert "kind: TFJob\n" in done.stdout
    assert "yurt: restart: the loss of a running pod" in done.stderr
    assert json.loads(yurt("convert", "job.yaml", "--to", "tfjob", "--format", "json").stdout)["kind"] == "TFJob"
    refused = {
        ("job.yaml", "--to", "tfjob", "--format", "hcl"): "--format hcl: --to tfjob writes yaml or json",
        ("tfjob.yaml", "--mhz", "2000"): "--mhz is for a Nomad job file, and this is a TFJob's",
        ("tfjob.yaml", "job.yaml"): "the files are in different formats: tfjob, yurt",
        ("tfjob.yaml", "tfjob.yaml"): "a TFJob is one file, and there are 2",
    }
    for arguments, said in refused.items():
        assert yurt("convert", *arguments, code=2).stderr.startswith(f"yurt: {said}")
    (yurt.place / "bare.yaml").write_text("name: a\ncommand: sees.py\n")
    assert "a names no image, and a TFJob needs one" in yurt("convert", "bare.yaml", "--to", "tfjob", code=2).stderr
