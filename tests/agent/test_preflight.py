"""What is found out before the start, in environments made for it."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from dataclasses import replace
from pathlib import Path

import pytest

from tests.contract.test_values import SPEC
from yurt.agent.preflight import preflight, script_of
from yurt.contract.spec import TaskSpec

RUN = replace(SPEC, strategy="none", tasks=(TaskSpec("worker", 0, ("python", "train.py")),))


@pytest.mark.parametrize(
    ("command", "script", "module"),
    [
        ("python train.py --epochs 3", "train.py", None),
        ("python -u -W ignore -X dev train.py", "train.py", None),
        ("python -m pkg.train --x", None, "pkg.train"),
        ("python -c pass", None, None),
        ("python", None, None),
    ],
)
def test_what_a_python_command_runs(command, script, module):
    assert script_of(command.split()) == (script, module)


def look(folder: Path, *command: str):
    return preflight(RUN, RUN.tasks[0], command, dict(os.environ), str(folder))


def test_a_command_that_is_nowhere(tmp_path):
    found = look(tmp_path, "pyhton", "train.py")
    assert found.problem == "the command 'pyhton' was not found on PATH or in the job's files"


def test_a_script_that_is_not_among_the_files(tmp_path):
    found = look(tmp_path, sys.executable, "trian.py")
    assert found.problem == "the script 'trian.py' is not among the job's files"
    assert found.hint


def test_a_program_among_the_files_is_found(tmp_path):
    program = tmp_path / "run.sh"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    assert look(tmp_path, "./run.sh").problem is None


def test_an_environment_that_does_not_run(tmp_path):
    broken = tmp_path / "python3"
    broken.write_text("#!/bin/sh\necho no; exit 3\n")
    broken.chmod(0o755)
    (tmp_path / "train.py").touch()
    assert "does not run" in look(tmp_path, "./python3", "train.py").problem


def test_it_imports_nothing_of_the_job_and_no_tensorflow(tmp_path):
    (tmp_path / "train.py").write_text("raise SystemExit('was run')")
    (tmp_path / "tensorflow.py").write_text("raise SystemExit('was imported')")
    found = look(tmp_path, sys.executable, "train.py")
    assert found.problem is None
    assert found.found["python"] == ".".join(map(str, sys.version_info[:3]))
    assert found.found["tensorflow"]


def test_the_standard_server_needs_tensorflow(tmp_path):
    venv.create(tmp_path / "bare", with_pip=False)
    python = tmp_path / "bare/bin/python"
    assert subprocess.run([python, "-V"], check=True).returncode == 0
    run = replace(RUN, tasks=(TaskSpec("ps", 0, None),), strategy="parameter-server")
    found = preflight(run, run.tasks[0], (str(python), "-"), dict(os.environ), str(tmp_path))
    assert "has no TensorFlow, which the standard server needs" in found.problem
    assert "pip install tensorflow" in found.hint
