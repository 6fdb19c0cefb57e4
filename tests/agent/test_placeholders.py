"""{role}, {index} and {address} in a command; and what a task tells beside its progress."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace

import pytest

from tests.agent.test_preflight import RUN
from tests.support.runs import Folder, processes_of
from yurt.agent.heartbeat import read_progress
from yurt.agent.preflight import preflight
from yurt.contract.placeholders import filled
from yurt.contract.spec import TaskSpec

TASK = TaskSpec("worker", 3, None)


@pytest.mark.parametrize(
    ("word", "becomes"),
    [
        ("{role}", "worker"),
        ("--task={role}/{index}", "--task=worker/3"),
        ("{address}{address}", "h:1h:1"),
        ("{{role}}", "{worker}"),
        ("${role}", "$worker"),
        ("{0}", "{0}"),
        ("{}", "{}"),
        ("{role!r}", "{role!r}"),
        ("{role:>9}", "{role:>9}"),
        ("{ role }", "{ role }"),
        ("{Role}", "{Role}"),
        ("${HOME} {name}", "${HOME} {name}"),
        ('{"role": {"index": 1}}', '{"role": {"index": 1}}'),
        ("{rol\\e}", "{rol\\e}"),
    ],
)
def test_only_the_three_are_filled_in(word, becomes):
    assert filled(("a", word), TASK, "h:1") == ("a", becomes)


def test_what_is_filled_in_is_not_looked_at_again():
    assert filled(("{address}",), TASK, "{role}") == ("{role}",)


def test_before_there_is_an_address_it_stays():
    assert filled(("{role}-{address}",), TASK) == ("worker-{address}",)


def test_the_preflight_looks_for_the_filled_script(tmp_path):
    (tmp_path / "train_worker_3.py").write_text("")
    run = replace(RUN, tasks=(TASK,))
    command = (sys.executable, "train_{role}_{index}.py")
    assert preflight(run, TASK, command, dict(os.environ), str(tmp_path)).problem is None
    other = preflight(run, replace(TASK, index=4), command, dict(os.environ), str(tmp_path))
    assert other.problem == "the script 'train_worker_4.py' is not among the job's files"


def test_the_source_that_is_read_is_that_of_the_filled_command(tmp_path):
    (tmp_path / "train_worker.py").write_text("import tensorflow as tf\ntf.estimator.Estimator\n")
    task = TaskSpec("worker", 0, (sys.executable, "train_{role}.py"))
    run = replace(RUN, tasks=(task,))
    found = preflight(run, task, task.command, dict(os.environ), str(tmp_path))
    assert found.found["source"]["gone"], "the script was not read"


@pytest.mark.parametrize(
    ("data", "skipped"),
    [
        (
            {"skipped": 4, "sets": [{"path": "a/b", "skipped": 3, "files": {}}, {"path": "c", "skipped": 1}]},
            {"a/b": 3, "c": 1},
        ),
        ({"skipped": 0, "sets": [{"path": "a", "skipped": 0}]}, None),
        ({"sets": {"path": "a"}}, None),
        ({"sets": [3, {"path": "a", "skipped": "many"}]}, None),
        ([], None),
    ],
)
def test_bad_rows_are_read_beside_the_progress(tmp_path, data, skipped):
    (tmp_path / "progress.json").write_text('{"epoch": 1}')
    (tmp_path / "data.json").write_text(json.dumps(data))
    assert read_progress(str(tmp_path)) == {"epoch": 1, **({"skipped": skipped} if skipped else {})}


SCRIPT = """
import json, os, sys
from pathlib import Path
config = json.loads(os.environ["TF_CONFIG"])
own = config["cluster"][sys.argv[1]][int(sys.argv[2])] if sys.argv[1] in config["cluster"] else "?"
print("TOLD", sys.argv[1:], sys.argv[3] == own, os.environ["YURT_JOB"], flush=True)
tracking = Path(os.environ["YURT_TRACKING_DIR"], "tensorboard")
tracking.mkdir(parents=True, exist_ok=True)
beside = Path(os.environ["YURT_PROGRESS_FILE"])
beside.write_text(json.dumps({"epoch": 1, "input_wait": 0.34}))
sets = [{"path": "data/train", "skipped": 3, "files": {}}]
beside.with_name("data.json").write_text(json.dumps({"skipped": 3, "sets": sets}))
"""


def test_a_run_fills_them_in_and_tells_what_was_skipped_tracked_and_waited_for(tmp_path):
    folder = Folder(tmp_path)
    command = "python train_{role}.py {role} {index} {address} {x} {{index}}"
    job = folder.write({"name": "filled", "command": command, "roles": {"chief": 1, "worker": 1}})
    for role in ("chief", "worker"):
        (job.parent / f"train_{role}.py").write_text(SCRIPT)
    checked = folder.yurt("check", job)
    assert checked.returncode == 0, checked.stderr
    assert "{address}" in folder.yurt("render", job).stdout
    run = folder.start(job)
    assert run.wait() == 0, run.output
    for role in ("chief", "worker"):
        (line,) = [line for line in run.log(f"{role}/0").splitlines() if line.startswith("TOLD")]
        assert line.startswith(f"TOLD ['{role}', '0', '127.0.0.1:")
        assert line.endswith(", '{x}', '{0}'] True filled")
    path = f"./home/runs/{run.run_id}/tracking/tensorboard"
    assert f"tracked: tensorboard --logdir {path}" in run.output
    assert "skipped 3 bad rows of data/train" in run.output
    assert "hint: chief/0 and worker/0 waited for input 34 % of the time" in run.output
    status = folder.yurt("status", run.run_id).stdout
    assert f"  tracked   tensorboard --logdir {path}\n" in status
    assert "  skipped   3 bad rows of data/train\n" in status
    assert "34 % waiting for input" in status
    assert not processes_of(run.run_id)
