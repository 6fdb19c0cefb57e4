"""A gang of two real TensorFlow workers, and what goes wrong with it."""

from __future__ import annotations

import re
import signal
import time

import pytest

from tests.support.runs import Folder, agents_of, wait_until
from tests.support.scripts import MULTI_WORKER

pytestmark = pytest.mark.tensorflow


def job(**changes):
    return {
        "name": "gang",
        "command": "python train.py",
        "strategy": "multi-worker-mirrored",
        "roles": {"worker": 2},
        "restart": "on-failure",
        "grace": "2s",
        **changes,
    }


def result(log: str) -> tuple[int, float]:
    """Steps and loss that a worker printed at its end."""
    steps, loss = re.findall(r"^steps (\d+) loss ([\d.e-]+)$", log, re.MULTILINE)[-1]
    return int(steps), float(loss)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory) -> tuple[int, float]:
    """Steps and loss of a run that nothing happens to."""
    folder = Folder(tmp_path_factory.mktemp("undisturbed"))
    run = folder.start(folder.write(job(output="./models", env={"EPOCHS": 8}), train=MULTI_WORKER))
    assert run.wait() == 0, run.output
    assert (folder.path / "job/models/latest/model.keras").is_file()
    assert "models/gang-" in run.output
    assert "loss" in run.output.rpartition("succeeded")[2]
    assert result(run.log("worker/0")) == result(run.log("worker/1"))
    run.assert_nothing_left()
    return result(run.log("worker/0"))


@pytest.mark.parametrize("victim", ["worker/0", "worker/1"])
def test_a_worker_killed_in_the_middle_costs_one_restart_and_no_step(folder, undisturbed, victim):
    file = folder.write(job(env={"EPOCHS": 8, "EPOCH_S": 0.3}), train=MULTI_WORKER)
    run = folder.start(file)
    run.wait_for_line("worker/0", "Epoch 4/8")
    run.kill(run.pid(victim))
    assert run.wait() == 0, run.output
    state = run.state()
    assert (state["restarts"], state["generation"]) == (1, 1)
    assert state["causes"][0]["message"] == f"{victim} was killed by SIGKILL (exit code 137)"
    assert f"{victim} was killed by SIGKILL" in run.output
    steps, loss = result(run.log("worker/0"))
    assert steps == undisturbed[0] == 40
    assert loss == pytest.approx(undisturbed[1], rel=1e-5)
    assert run.log("worker/0").count("Epoch 1/8") == 1, "it began anew instead of resuming"
    run.assert_nothing_left()


def test_an_agent_killed_takes_its_task_along_and_comes_back(folder, undisturbed):
    run = folder.start(folder.write(job(env={"EPOCHS": 8, "EPOCH_S": 0.3}), train=MULTI_WORKER))
    run.wait_for_line("worker/0", "Epoch 4/8")
    run.kill(run.agent_pid("worker/1"))
    assert run.wait() == 0, run.output
    assert run.state()["restarts"] == 1
    assert "worker/1 was lost: its agent is gone (its agent was killed by SIGKILL)" in run.output
    assert result(run.log("worker/0"))[0] == undisturbed[0]
    run.assert_nothing_left()


def test_a_worker_that_exits_1_at_once_ends_the_run_and_is_named(folder):
    script = (
        "import json, os, sys\n"
        "if json.loads(os.environ['TF_CONFIG'])['task']['index'] == 1:\n"
        "    print('reading the data')\n"
        "    sys.exit('no such column: temperatur')\n" + MULTI_WORKER
    )
    run = folder.start(folder.write(job(restart="never"), train=script))
    run.wait_for_phase("running")
    began = time.monotonic()
    assert run.wait() == 1
    assert time.monotonic() - began < 5
    assert "worker/1 failed with exit code 1" in run.output
    assert run.output.count("no such column: temperatur") >= 2, "in the log and in the summary"
    assert "worker/0 failed" not in run.output
    assert run.state()["verdict"]["task"] == "worker/1"
    assert run.member("worker/0")["exit"]["reason"] == "stopped"
    run.assert_nothing_left()


def test_the_limit_of_restarts_holds(folder):
    run = folder.start(folder.write(job(max_restarts=2, command="python -c 'import sys; sys.exit(3)'"), train=""))
    assert run.wait() == 1
    assert run.state()["restarts"] == 2
    assert "the limit of 2 restarts is used up" in run.output


def test_sigterm_to_the_launcher_ends_the_run_gracefully(folder):
    run = folder.start(folder.write(job(env={"EPOCHS": 500, "EPOCH_S": 0.2}), train=MULTI_WORKER))
    run.wait_for_line("worker/0", "Epoch 2/500")
    run.process.send_signal(signal.SIGTERM)
    assert run.wait(15) == 4
    assert "stopped by SIGTERM" in run.output
    run.assert_nothing_left()


def test_the_launcher_killed_takes_the_whole_run_along(folder):
    run = folder.start(folder.write(job(env={"EPOCHS": 500, "EPOCH_S": 0.2}), train=MULTI_WORKER))
    run.wait_for_line("worker/0", "Epoch 2/500")
    run.process.kill()
    run.process.wait()
    run.assert_nothing_left(within_s=8)
    listed = folder.yurt("status", run.run_id)
    assert "its launcher was killed" in listed.stdout


def test_agents_and_launcher_killed_together_leave_nothing(folder):
    script = "import subprocess\nsubprocess.Popen(['sleep', '600'], start_new_session=True)\n" + MULTI_WORKER
    run = folder.start(folder.write(job(env={"EPOCHS": 500, "EPOCH_S": 0.2}), train=script))
    run.wait_for_line("worker/0", "Epoch 1/500")
    agents = [run.agent_pid("worker/0"), run.agent_pid("worker/1")]
    run.process.kill()
    run.process.wait()
    run.kill(agents[0])
    run.assert_nothing_left(within_s=10)


def test_a_task_that_never_comes_is_named_at_the_deadline(folder):
    """Its agent is suspended before it can join, as on a machine that hangs."""
    file = folder.write(job(start_deadline="3s"), train=MULTI_WORKER)
    run = folder.start(file)
    run.kill(wait_until(lambda: agents_of(run).get("worker-1"), 10, "the agent of worker/1"), signal.SIGSTOP)
    assert run.wait(30) == 3
    assert "the start deadline of 3 s passed: worker/1 never came" in run.output
    run.assert_nothing_left()
