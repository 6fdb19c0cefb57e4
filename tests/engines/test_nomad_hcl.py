"""`yurt render --on nomad --format hcl`: what the real nomad reads from it is the job that Yurt sends."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.engines.test_nomad_render import CLUSTER, NASTY, PLACE, RUN
from tests.support.runs import Folder
from yurt.convert.nomad.hcl_writing import as_hcl
from yurt.engines.nomad.options import NomadOptions
from yurt.engines.nomad.render import render

#: Every option that has a place of its own in the job, in words that Nomad 1.0.18 knows.
EVERY = {
    "driver": "exec",
    "datacenters": ["eu", "us"],
    "region": "west",
    "namespace": "ml",
    "priority": 70,
    "constraints": [{"attribute": "${attr.kernel.version}", "operator": "version", "value": ">= 4"}],
    "affinities": [{"attribute": "${attr.cpu.arch}", "value": "amd64", "weight": -20}],
    "volumes": {"data": {"source": "training", "path": "/data", "read_only": True}},
    "network": "bridge",
    "consul": "http://10.0.0.1:8500",
    "host": "${attr.unique.platform.aws.local-ipv4}",
    "meta": {"team": "weather"},
    "gpu": {
        "memory": "8 GiB",
        "model": "A100|H100",
        "affinities": [{"attribute": "${device.model}", "value": "H100", "weight": 80}],
    },
    "secrets": {"KEY": {"vault": "secret/data/x", "key": "a.b"}},
    "vault": {"policies": ["train"]},
    "config": {"pid_mode": "host", "mounts": [{"target": "/x", "sizes": [1, 2]}]},
}


def job_of(**options: Any) -> dict[str, Any]:
    run = replace(RUN, tasks=(replace(RUN.tasks[0], gpus=2), *RUN.tasks[1:]))
    job: dict[str, Any] = render(run, PLACE, NomadOptions.model_validate(options), CLUSTER)["job"]
    return job


def as_nomad_reads(hcl: str, folder: Path) -> Any:
    if shutil.which("nomad") is None:
        pytest.skip("no nomad on PATH")
    file = folder / "job.nomad"
    file.write_text(hcl)
    done = subprocess.run(["nomad", "job", "run", "-output", str(file)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["Job"]


def differences(sent: Any, read: Any, where: str = "") -> list[str]:
    """What of `sent` is otherwise in `read`, which has Nomad's own defaults besides."""
    if isinstance(sent, dict):
        read = read or {}
        return [line for key in sent for line in differences(sent[key], read.get(key), f"{where}.{key}")]
    if isinstance(sent, list) and sent and len(sent) == len(read or []):
        return [
            line for i, (a, b) in enumerate(zip(sent, read, strict=True)) for line in differences(a, b, f"{where}[{i}]")
        ]
    return [] if sent == read or (not sent and not read) else [f"{where}: {sent!r} was read as {read!r}"]


@pytest.mark.parametrize("options", [{}, EVERY], ids=["plain", "every option"])
def test_nomad_reads_the_job_that_is_sent(options, tmp_path):
    job = job_of(**options)
    assert differences(job, as_nomad_reads(as_hcl(job), tmp_path)) == []


@pytest.mark.parametrize("text", [NASTY, f"{NASTY}\n", "EOT\n EOT_\n", "\n\n", 'a\\n"\\\\\n', "${a}%{b}\r\n", "\t \n"])
def test_text_survives_both_ways_of_writing_it(text, tmp_path):
    job = job_of()
    job["TaskGroups"][0]["Tasks"][0]["Templates"][0]["EmbeddedTmpl"] = text
    read = as_nomad_reads(as_hcl(job), tmp_path)
    assert read["TaskGroups"][0]["Tasks"][0]["Templates"][0]["EmbeddedTmpl"] == text


def test_the_command_prints_it_with_its_notes_as_comments(tmp_path):
    folder = Folder(tmp_path, {"NOMAD_ADDR": "http://127.0.0.1:1"})
    job = folder.write({"name": "waits", "command": "python train.py", "roles": {"worker": 2}}, train="")
    done = folder.yurt("render", job, "--on", "nomad", "--format", "hcl")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("# nothing is known of the cluster's nodes")
    sent = json.loads(folder.yurt("render", job, "--on", "nomad").stdout)["job"]
    assert differences(sent, as_nomad_reads(done.stdout, tmp_path)) == []


def test_what_is_no_nomad_job_has_no_hcl(tmp_path):
    folder = Folder(tmp_path)
    job = folder.write({"name": "waits", "command": "python train.py"}, train="")
    done = folder.yurt("render", job, "--format", "hcl")
    assert done.returncode == 2, done.stderr
    assert "local is sent no Nomad job" in done.stderr
