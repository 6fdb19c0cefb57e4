"""SIGTERM in a plain `fit` under MultiWorkerMirroredStrategy, which TensorFlow itself swallows."""

from __future__ import annotations

import json
import signal
import time

import pytest

from tests.support.runs import Folder, processes_of, wait_until
from tests.training.pairs import SCRIPTS, alone, ports, start
from yurt.training.mending import part

pytestmark = pytest.mark.tensorflow

SCRIPT = (SCRIPTS / "leaving.py").read_text()


@pytest.mark.parametrize("keras", ["patched", "legacy"])
def test_a_stopped_run_does_not_wait_for_its_grace_time(tmp_path, keras):
    folder = Folder(tmp_path)
    job = {"name": "plain", "command": "train.py", "roles": {"worker": 2}, "grace": "60s", "keras": keras}
    run = folder.start(folder.write(job, train=SCRIPT))
    for task in ("worker/0", "worker/1"):
        run.wait_for_line(task, "READY")
    begun = time.monotonic()
    run.kill(run.process.pid, signal.SIGTERM)
    assert run.wait() == 4, run.output
    assert time.monotonic() - begun < 30, "no task heard the signal"
    ends = [run.member(task)["exit"] for task in ("worker/0", "worker/1")]
    assert [(end["reason"], end["code"], end["signal"]) for end in ends] == [("stopped", 143, None)] * 2
    assert "cancelled" in run.output or "stopped" in run.output
    assert not processes_of(run.run_id)


def one_worker(folder, **changes: str):
    """A cluster of one worker, in which TensorFlow swallows the signal too."""
    cluster = {"worker": [f"127.0.0.1:{ports(1)[0]}"]}
    config = {"cluster": cluster, "task": {"type": "worker", "index": 0}}
    return {"script": "leaving.py", "folder": folder, "TF_CONFIG": json.dumps(config), **changes}


@pytest.mark.parametrize(
    ("answer", "ready"),
    [
        ("nobody", "READY False _yurt_leaving"),
        ("preemption", "READY False tensorflow.python.distribute.failure_handling.failure_handling"),
    ],
)
def test_whoever_answers_already_is_left_alone_and_the_end_of_fit_is_the_end_of_it(tmp_path, answer, ready):
    ended = alone(**one_worker(tmp_path, ANSWER=answer, EPOCHS="2"))
    assert ended.code == 0, ended.errors
    lines = ended.output.splitlines()
    assert lines[0] == ready
    assert lines[-1] == f"AFTER {answer == 'nobody'} -1"


def test_the_signal_ends_a_process_whose_main_thread_hears_nothing(tmp_path):
    process = start(**one_worker(tmp_path, DEAF="1"))
    try:
        wait_until(lambda: "READY" in (tmp_path / "out").read_text(), 120, "training")
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
        assert (tmp_path / "out").read_text().endswith("not flushed yet"), "output was lost"
    finally:
        process.kill()


def test_a_callback_that_answers_is_left_alone(monkeypatch):
    class Answers:
        yurt_handles_sigterm = True

    leaving = part("_yurt_leaving")
    monkeypatch.setattr(leaving, "swallows", lambda strategy: True)
    assert leaving.wanted(None, [object()])
    assert not leaving.wanted(None, [object(), Answers()])
