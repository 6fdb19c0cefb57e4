"""`fit` that was ended at any moment goes on as if it had not been: the result is that of the undisturbed run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.runs import Folder, processes_of, wait_until
from tests.training.pairs import alone
from tests.training.resumed import STEPS, case, ended, start, worst, write_rows
from yurt.training import kept

pytestmark = pytest.mark.tensorflow

PARAMETER_SERVER = {"strategy": "parameter-server", "roles": {"chief": 1, "worker": 1, "ps": 1}}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Folder]:
    write_rows(tmp_path)
    made = Folder(tmp_path)
    yield made
    assert not any(processes_of(run_id) for run_id in made.run_ids())


def test_ten_deaths_at_random_moments_leave_no_trace(folder):
    seed = os.environ.get("SEED") or str(int.from_bytes(os.urandom(4), "big"))
    print("seed", seed)
    expected = ended(start(folder, "quiet", "resume_gang.py"))
    assert expected["steps"] == 7 * STEPS
    stormy = start(folder, "stormy", "resume_gang.py", job={"restart": "on-failure"}, SEED=seed)
    ended(stormy)
    assert stormy.state()["restarts"] == 10
    for task in ("worker/0", "worker/1"):
        difference = worst(case(stormy.log(task)), expected)
        print(task, "differs by", difference)
        assert difference < 1e-6


def test_sigterm_to_one_worker_only_is_answered_by_both_after_the_same_step(folder):
    expected = ended(start(folder, "quiet", "resume_gang.py", KERAS="tf_keras"))
    run = start(folder, "told", "resume_gang.py", KERAS="tf_keras", TERM="1")
    assert worst(ended(run), expected) < 1e-6
    assert run.state()["restarts"] == 1  # under the default policy: 143 is no fault of the script
    assert run.output.count("interrupted: saved epoch ") == 1
    assert "; exit code 143" in run.output
    assert "was interrupted (exit code 143)" in run.output
    assert "training goes on at epoch " in run.output


def test_ctrl_c_keeps_a_checkpoint_and_ends_without_waiting_for_the_whole_grace(folder):
    run = start(folder, "stopped", "resume_gang.py", job={"grace": "10m"}, TERM="none")
    file = run.path / "checkpoints"
    run.wait_for_line("worker/0", "epoch_iterator.py")  # `fit` has begun
    wait_until(lambda: kept.listed(file), 60, "a checkpoint")
    run.process.send_signal(signal.SIGTERM)
    assert run.wait(60) == 4
    assert "interrupted: saved epoch " in run.log("worker/0")
    assert kept.listed(file)[-1].steps_done > 1


@pytest.mark.parametrize("loop", ["0", "1"])
def test_parameter_servers_with_one_worker_go_on_exactly(folder, loop):
    job = {**PARAMETER_SERVER, "restart": "on-failure"}
    expected = ended(start(folder, "quiet", "resume_ps.py", job=job, LOOP=loop), "chief/0")
    run = start(folder, "killed", "resume_ps.py", job=job, LOOP=loop, DIE="27")
    assert ended(run, "chief/0") == expected
    assert run.state()["restarts"] == 1
    assert expected["steps"] == 3 * STEPS


def test_parameter_servers_with_two_workers_count_every_step_once(folder):
    job = {**PARAMETER_SERVER, "roles": {"chief": 1, "worker": 2, "ps": 1}}
    run = start(folder, "told", "resume_ps.py", job=job, DIE="27", TERM_CHIEF="1", KERAS="tf_keras")
    value = ended(run, "chief/0")
    assert value["steps"] == 3 * STEPS
    assert len(value["history"]["loss"]) == 3
    assert run.state()["restarts"] == 1
    assert "interrupted: saved epoch 2, step 7; exit code 143" in run.output


@pytest.mark.parametrize("keras", ["keras", "tf_keras"])
def test_a_process_that_dies_at_every_kind_of_moment_goes_on_bit_by_bit(tmp_path, keras):
    own = tmp_path / "quiet"
    expected = case(alone("resume_alone.py", own, KERAS=keras).output)
    assert expected["steps"] == 4 * 8
    own = tmp_path / "stormy"
    assert alone("resume_alone.py", own, KERAS=keras, DIE="step 2").code == -9  # before any checkpoint
    assert alone("resume_alone.py", own, KERAS=keras, DIE="write").code == -9  # while the first is written
    assert not kept.listed(own / "kept")
    assert any(path.name.endswith(".part") for path in (own / "kept").iterdir())
    term = alone("resume_alone.py", own, KERAS=keras, DIE="term 13")
    assert (term.code, "interrupted: saved epoch 2, step 5; exit code 143" in term.errors) == (143, True)
    again = alone("resume_alone.py", own, KERAS=keras, DIE="step 3")  # the last of an epoch: within it all is done
    assert (again.code, "training goes on at epoch 2, step 6" in again.errors) == (-9, True)
    last = alone("resume_alone.py", own, KERAS=keras)
    assert case(last.output) == expected, last.errors
    assert not any(path.name.endswith(".part") for path in (own / "kept").iterdir())
    # It had ended: nothing is trained, and the history is whole.
    finished = alone("resume_alone.py", own, KERAS=keras)
    assert case(finished.output) == expected
    assert "training had ended already" in finished.errors


@pytest.mark.parametrize("keras", ["keras", "tf_keras"])
def test_several_steps_an_execution_and_a_schedule(tmp_path, keras):
    options = {"KERAS": keras, "AT_ONCE": "2", "SCHEDULE": "1", "EVERY": "2"}
    expected = case(alone("resume_alone.py", tmp_path / "quiet", **options).output)
    assert alone("resume_alone.py", tmp_path / "killed", DIE="term 14", **options).code == 143
    resumed = alone("resume_alone.py", tmp_path / "killed", **options)
    assert "training goes on at epoch 2, step 7" in resumed.errors
    assert worst(case(resumed.output), expected) < 1e-6


def test_data_that_was_not_passed_through_resume_begins_at_an_epochs_beginning(tmp_path):
    expected = case(alone("resume_alone.py", tmp_path / "quiet", DATA="plain").output)
    killed = alone("resume_alone.py", tmp_path / "killed", DATA="plain", DIE="term 13")
    assert killed.code == 143
    assert "checkpoints are kept at the end of epochs alone" in killed.errors
    assert "interrupted: saved the end of epoch 1; exit code 143" in killed.errors
    resumed = alone("resume_alone.py", tmp_path / "killed", DATA="plain")
    assert "training goes on at epoch 2, from" in resumed.errors
    assert case(resumed.output) == expected


def test_a_full_disk_is_said_and_ends_the_training(tmp_path):
    ended = alone("resume_alone.py", tmp_path, DIE="full")
    assert ended.code == 1
    assert "a checkpoint could not be written: [Errno 28] No space left on device" in ended.errors
