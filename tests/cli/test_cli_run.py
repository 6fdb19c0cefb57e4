"""`yurt run` where its output is no terminal."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess

import pytest

from tests.cli import scripts
from tests.support.runs import YURT, wait_until


def test_a_run_shows_its_lines_and_ends_with_where_the_model_is_and_how_good(folder):
    file = folder.write(scripts.two(output="./models"), train=scripts.TRAIN)
    result = folder.yurt("run", file)
    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    run_id = re.fullmatch(r"yurt: run (job-\w{6}) on this machine: 2 tasks", lines[0])[1]
    assert any(re.fullmatch(r"yurt: training \(all 2 tasks are there after [\d.]+ s\)", line) for line in lines)
    for task in ("worker/0", "worker/1"):
        own = [line.partition(" | ")[2] for line in lines if line.startswith(f"{task} | ")]
        assert [line for line in own if not line.startswith("yurt: ")] == [
            "Epoch 1/2",
            "10/10 - 0s - loss: 0.4 - val_loss: 0.5",
            "Epoch 2/2",
            "10/10 - 0s - loss: 0.3 - val_loss: 0.5",
        ]
    assert re.fullmatch(rf"yurt: {run_id} succeeded after [\d.]+ s", lines[-3])
    assert lines[-2:] == [
        f"      model: ./job/models/{run_id} (latest points to it)",
        "      loss 0.3, val_loss 0.5 after epoch 2/2",
    ]
    assert (folder.path / "job/models/latest/model.txt").read_text() == "a model"
    assert "\x1b" not in result.stdout


def test_the_first_failure_is_named_with_its_last_lines_and_the_rest_were_stopped(folder):
    result = folder.yurt("run", folder.write(scripts.two(restart="never"), train=scripts.ONE_FAILS))
    assert result.returncode == 1
    said = result.stdout[result.stdout.rindex("yurt: job-") :]
    assert re.match(r"yurt: job-\w+ failed after [\d.]+ s: worker/1 failed with exit code 3\n", said)
    assert "  | about to fail\n" in said
    assert "  | ValueError: the data is wrong\n" in said
    assert "worker/0 was stopped by Yurt\n" in said
    assert re.search(r"the whole output: yurt logs job-\w+ worker/1\n", said)


def test_restarts_are_told_when_they_happen_and_at_the_end(folder):
    result = folder.yurt("run", folder.write(scripts.job(restart="on-failure"), train=scripts.KILLED_ONCE))
    assert result.returncode == 0
    cause = "worker/0 was killed by SIGKILL (exit code 137)"
    assert f"yurt: restart 1 of 3: {cause}\n" in result.stdout
    assert f"      restarts: 1 of 3\n        {cause}\n" in result.stdout
    assert "worker/0 | second attempt\n" in result.stdout


def test_restarts_that_run_out_are_a_failure(folder):
    script = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    job = scripts.job(restart="on-failure", max_restarts=1)
    result = folder.yurt("run", folder.write(job, train=script))
    assert result.returncode == 1
    assert "the limit of 1 restart is used up" in result.stdout


def test_a_deadline_that_passes_has_its_own_exit_code(folder):
    result = folder.yurt("run", folder.write(scripts.job(deadline="1s"), train=scripts.FOREVER))
    assert result.returncode == 3
    assert "ran out of time" in result.stdout


def test_a_model_that_cannot_be_published_is_kept_and_can_be_published_later(folder):
    (folder.path / "full").write_text("a file, no folder")
    job = scripts.job(output=str(folder.path / "full" / "models"))
    result = folder.yurt("run", folder.write(job, train=scripts.TRAIN))
    assert result.returncode == 5
    run_id = folder.run_ids()[0]
    assert f"to publish it again: yurt publish {run_id}" in result.stdout
    assert "model: kept in" in result.stdout
    assert folder.yurt("status", run_id, "--wait").returncode == 5
    assert folder.yurt("publish", run_id).returncode == 5
    assert "kept" in folder.yurt("prune", "--all").stdout

    (folder.path / "full").unlink()
    again = folder.yurt("publish", run_id)
    assert again.returncode == 0, again.stderr
    assert (folder.path / "full/models/latest/model.txt").read_text() == "a model"
    status = folder.yurt("status", run_id, "--wait")
    assert status.returncode == 0
    assert f"./full/models/{run_id}" in status.stdout
    assert "removed" in folder.yurt("prune", "--all").stdout
    assert folder.run_ids() == []


def test_json_is_the_one_thing_on_standard_output(folder):
    file = folder.write(scripts.two(restart="never"), train=scripts.ONE_FAILS)
    result = folder.yurt("run", file, "--json")
    found = json.loads(result.stdout)
    assert (found["outcome"], found["exit_code"], found["first_failure"]) == ("failed", 1, "worker/1")
    assert {task["task"]: task["state"] for task in found["tasks"]} == {"worker/0": "stopped", "worker/1": "failed"}
    assert "worker/1 | about to fail" in result.stderr


def test_a_progress_bar_is_one_line(folder):
    result = folder.yurt("run", folder.write(scripts.job(), train=scripts.BAR))
    own = [line for line in result.stdout.splitlines() if line.startswith("worker/0 | ")]
    assert own == ["worker/0 | 200/200 ━━━━ 3ms/step - loss: 0.0050", "worker/0 | 200% |####|"]


def test_odd_text_is_shown_as_it_is_without_what_would_move_the_terminal(folder):
    result = folder.yurt("run", folder.write(scripts.job(), train=scripts.ODD_TEXT))
    assert "worker/0 | [bold red]no markup[/bold red] [/] :smile: red  {braces} %s\n" in result.stdout
    assert "worker/0 | a\ttab, a euro €, and no newline at the end\n" in result.stdout
    assert not set(result.stdout) & {"\x1b", "\x07"}


def test_two_hundred_thousand_lines_are_all_there_in_their_order(folder):
    script = "import os\nfor n in range(200_000): print(os.environ['YURT_INDEX'], n)"
    job = scripts.two()
    job["env"] = {"PYTHONUNBUFFERED": ""}  # it is Python's speed with it that would be measured
    result = folder.yurt("run", folder.write(job, train=script))
    assert result.returncode == 0
    for index in "01":
        mark = f"worker/{index} | {index} "
        numbers = [line[len(mark) :] for line in result.stdout.splitlines() if line.startswith(mark)]
        assert numbers == [str(n) for n in range(200_000)]


def test_variables_of_the_command_line_win(folder):
    script = "import os; print('A', os.environ['A'], 'B', os.environ['B'], 'C', os.environ['C'])"
    job = scripts.job(env={"A": "job", "C": "job"}, roles={"worker": {"replicas": 1, "env": {"A": "role"}}})
    folder.environment = {**folder.environment, "B": "from here"}
    result = folder.yurt("run", folder.write(job, train=script), "--env", "A=x=y", "--env", "B")
    assert "worker/0 | A x=y B from here C job\n" in result.stdout


@pytest.mark.parametrize(("text", "said"), [("1A=x", "names no environment"), ("NOWHERE_SET", "no such variable here")])
def test_variables_that_are_none(folder, text, said):
    result = folder.yurt("run", folder.write(scripts.job(), train=scripts.TRAIN), "--env", text)
    assert result.returncode == 2
    assert said in result.stderr
    assert folder.run_ids() == []


def test_the_first_sigint_is_graceful(folder):
    run = folder.start(folder.write(scripts.job(grace="20s"), train=scripts.FOREVER))
    run.wait_for_line("worker/0", "for ever")
    run.kill(run.process.pid, signal.SIGINT)
    assert run.wait(10) == 4
    assert "yurt: stopping (Ctrl-C again to end at once)\n" in run.output
    assert "worker/0 | asked to end\n" in run.output
    assert "was stopped by Ctrl-C after" in run.output
    run.assert_nothing_left()


def test_the_second_sigint_is_at_once(folder):
    run = folder.start(folder.write(scripts.job(grace="60s"), train=scripts.STUBBORN))
    run.wait_for_line("worker/0", "for ever")
    run.kill(run.process.pid, signal.SIGINT)
    run.wait_for_line("worker/0", "I do not listen")
    run.kill(run.process.pid, signal.SIGINT)
    assert run.wait(10) == 4
    run.assert_nothing_left()


def test_sigterm_stops_it_too(folder):
    run = folder.start(folder.write(scripts.job(), train=scripts.FOREVER))
    run.wait_for_line("worker/0", "for ever")
    run.kill(run.process.pid, signal.SIGTERM)
    assert run.wait(10) == 4
    assert "stopped by SIGTERM" in run.output


def test_a_reader_that_leaves_ends_neither_the_run_nor_its_success(folder):
    script = "import time\nfor n in range(300): print('line', n); time.sleep(0.002)\nprint('done')"
    file = folder.write(scripts.job(), train=script)
    read, write = os.pipe()
    process = subprocess.Popen(
        [*YURT, "run", str(file)], env=folder.env(), cwd=folder.path, stdout=write, stderr=subprocess.PIPE
    )
    os.close(write)
    assert os.read(read, 10).startswith(b"yurt: run")
    os.close(read)
    assert process.communicate(timeout=30)[1] == b""
    assert process.returncode == 0
    assert "done" in folder.yurt("logs").stdout


def test_a_terminal_that_hangs_up_stops_nothing(folder):
    run = folder.start(folder.write(scripts.job(), train="import time; time.sleep(1.5); print('done')"))
    run.wait_for_phase("running")
    run.kill(run.process.pid, signal.SIGHUP)
    assert run.wait(20) == 0
    assert "done" in run.log("worker/0")
    assert "done" not in run.output


def test_a_reader_that_does_not_read_does_not_hold_the_run(folder):
    file = folder.write(scripts.job(output="./models"), train=scripts.TRAIN + "\nprint('x' * 1_000_000)\n")
    process = subprocess.Popen(
        [*YURT, "run", str(file)], env=folder.env(), cwd=folder.path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    wait_until(folder.run_ids, 20)
    assert folder.yurt("wait").returncode == 0
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 0
    assert b"x" * 1_000_000 in out
    assert b"latest points to it" in out


def test_ctrl_c_after_the_end_leaves_a_reader_that_does_not_read(folder):
    job = scripts.job(restart="never")
    file = folder.write(job, train="import sys; print('x' * 1_000_000); sys.exit(3)")
    process = subprocess.Popen([*YURT, "run", str(file)], env=folder.env(), cwd=folder.path, stdout=subprocess.PIPE)
    wait_until(folder.run_ids, 20)
    assert folder.yurt("wait").returncode == 1
    wait_until(lambda: process.poll() is not None or process.send_signal(signal.SIGINT), 10)
    assert process.returncode == 1
    process.stdout.close()
