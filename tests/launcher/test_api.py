"""Yurt from Python."""

from __future__ import annotations

import subprocess
import sys

import pytest

import yurt
from yurt.errors import JobError


@pytest.fixture(autouse=True)
def _home(tmp_path, monkeypatch):
    monkeypatch.setenv("YURT_HOME", str(tmp_path / "home"))


def test_the_public_names():
    assert set(yurt.__all__) == {"Job", "LoadedJob", "Role", "Verdict", "load_job", "run"}
    assert all(getattr(yurt, name) for name in yurt.__all__)


def test_importing_yurt_loads_nothing_heavy():
    script = "import sys, yurt; print([m for m in ('tensorflow', 'obstore', 'pydantic', 'yaml', 'rich') if m in sys.modules])"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_job_as_a_value_runs_and_publishes(tmp_path):
    (tmp_path / "train.py").write_text("import os; open(os.environ['YURT_MODEL_DIR'] + '/m', 'w').write('x')")
    seen = []
    job = yurt.Job(name="value", command="train.py", output="models")
    verdict = yurt.run(job, folder=tmp_path, on_look=lambda snapshot: seen.append(snapshot.state.phase))
    assert (verdict.outcome, verdict.exit_code) == ("succeeded", 0)
    assert (tmp_path / "models/latest/m").read_text() == "x"
    assert seen[-1] == "ended"


def test_a_job_that_fails_is_a_verdict(tmp_path):
    job = yurt.Job(name="value", command=["python", "-c", "raise SystemExit(7)"])
    verdict = yurt.run(job, folder=tmp_path)
    assert (verdict.outcome, verdict.task, verdict.exit.code) == ("failed", "worker/0", 7)


def test_a_wrong_job_is_a_job_error():
    with pytest.raises(JobError, match="name"):
        yurt.Job(name="My_Job", command="train.py")
