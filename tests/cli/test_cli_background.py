"""A run in the background, as other commands see it."""

from __future__ import annotations

import json
import subprocess
import time

from tests.cli import scripts
from tests.support.runs import YURT, wait_until


def detached(folder, job, script) -> str:
    result = folder.yurt("run", "-d", folder.write(job, train=script), "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)["run"]


def test_the_whole_life_of_a_run_in_the_background(folder):
    run_id = detached(folder, scripts.two(grace="20s"), scripts.FOREVER)
    wait_until(lambda: json.loads(folder.yurt("status", "--json").stdout)["tasks"][1]["state"] == "running", 20)

    (listed,) = json.loads(folder.yurt("ls", "--json").stdout)
    assert (listed["run"], listed["phase"], listed["outcome"], listed["tasks"]) == (run_id, "running", None, 2)
    assert f"{run_id}  running  local   2 " in folder.yurt("ls").stdout
    status = folder.yurt("status", run_id[:6])
    assert status.returncode == 0
    assert status.stdout.startswith(f"{run_id} is running after ")

    following = subprocess.Popen(
        [*YURT, "logs", "-f", run_id], env=folder.env(), cwd=folder.path, stdout=subprocess.PIPE, text=True
    )
    waiting = subprocess.Popen(
        [*YURT, "wait", "--json"], env=folder.env(), cwd=folder.path, stdout=subprocess.PIPE, text=True
    )
    kept = folder.yurt("prune", "--all", "--force")
    assert kept.stdout == "0 runs, 0 B freed\n"
    stopped = folder.yurt("stop")
    assert stopped.returncode == 0
    assert f"yurt: {run_id} was stopped by `yurt stop` after" in stopped.stdout

    lines, _ = following.communicate(timeout=20)
    assert following.returncode == 4
    for task in ("worker/0", "worker/1"):
        assert f"{task} | training for ever\n" in lines
        assert f"{task} | asked to end\n" in lines
    waited, _ = waiting.communicate(timeout=20)
    assert waiting.returncode == 4
    assert json.loads(waited)["outcome"] == "cancelled"

    assert folder.yurt("status", "--wait").returncode == 4
    assert folder.yurt("status").returncode == 0
    assert folder.yurt("logs", run_id, "worker/1").stdout.count("worker/0") == 0
    again = folder.yurt("stop", run_id)
    assert (again.returncode, "there was nothing to stop" in again.stdout) == (0, True)
    assert "0 runs" in folder.yurt("prune").stdout  # it ended today
    assert f"would go  {run_id}" in folder.yurt("prune", "--all", "--dry-run").stdout
    assert f"removed  {run_id}" in folder.yurt("prune", "--older-than", "0s").stdout
    assert "there are no runs yet" in folder.yurt("ls").stdout
    gone = folder.yurt("status", run_id)
    assert gone.returncode == 2
    assert gone.stderr.startswith(f"yurt: there is no run '{run_id}'\n")


def test_stop_now_asks_nobody(folder):
    detached(folder, scripts.job(grace="60s"), scripts.STUBBORN)
    wait_until(lambda: "for ever" in folder.yurt("logs").stdout, 20)
    begun = time.monotonic()
    assert folder.yurt("stop", "--now").returncode == 0
    assert time.monotonic() - begun < 15


def test_following_ends_with_the_verdict_and_says_it(folder):
    detached(folder, scripts.two(restart="never"), scripts.ONE_FAILS)
    followed = folder.yurt("logs", "-f")
    assert followed.returncode == 1
    assert "worker/1 | about to fail\n" in followed.stdout
    assert followed.stdout.splitlines()[-1].endswith("worker/1 failed with exit code 3")
    assert folder.yurt("logs").returncode == 0
    assert folder.yurt("wait").returncode == 1
    assert "worker/0  stopped" in folder.yurt("status").stdout
    assert "worker/1  failed " in folder.yurt("status").stdout


def test_every_line_reaches_those_who_follow(folder):
    script = "import os\nfor n in range(20_000): print(os.environ['YURT_INDEX'], n)"
    detached(folder, scripts.two(), script)
    followed = folder.yurt("logs", "-f").stdout.splitlines()
    for index in "01":
        mark = f"worker/{index} | {index} "
        assert [line[len(mark) :] for line in followed if line.startswith(mark)] == [str(n) for n in range(20_000)]


def test_the_end_of_a_log_and_what_came_since(folder):
    folder.yurt("run", folder.write(scripts.two(), train="for n in range(100): print(n)"))
    tail = folder.yurt("logs", "--tail", 2).stdout.splitlines()
    assert sorted(tail) == ["worker/0 | 98", "worker/0 | 99", "worker/1 | 98", "worker/1 | 99"]
    assert "worker/0 | 0\n" in folder.yurt("logs", "--since", "5m").stdout
    assert folder.yurt("logs", "--since", time.time() + 100).stdout == ""
    wrong = folder.yurt("logs", "--since", "tomorrow")
    assert wrong.returncode == 2
    assert wrong.stderr.startswith("yurt: --since 'tomorrow' is no time\n")


def test_a_task_that_there_is_not(folder):
    folder.yurt("run", folder.write(scripts.job(), train=scripts.TRAIN))
    result = folder.yurt("logs", "job", "worker/7")
    assert result.returncode == 2
    assert "has no task 'worker/7'" in result.stderr
    assert "worker/0" in result.stderr


def test_a_launcher_that_was_killed_is_told_as_such(folder):
    run = folder.start(folder.write(scripts.job(), train=scripts.FOREVER))
    run.wait_for_line("worker/0", "for ever")
    run.kill(run.process.pid)
    run.assert_nothing_left(15)
    run.process.wait()
    result = folder.yurt("wait")
    assert result.returncode == 6
    assert "its launcher was killed" in result.stdout


def test_a_model_goes_elsewhere_too(folder):
    folder.yurt("run", folder.write(scripts.job(), train=scripts.TRAIN))
    run_id = folder.run_ids()[0]
    nowhere = folder.yurt("publish", run_id)
    assert (nowhere.returncode, "names no output" in nowhere.stderr) == (2, True)
    done = folder.yurt("publish", "job", "--to", "elsewhere", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["published"]["place"] == str(folder.path / "elsewhere" / run_id)
    assert (folder.path / "elsewhere/latest/model.txt").is_file()


def test_the_model_of_a_failed_run_is_not_published(folder):
    folder.yurt("run", folder.write(scripts.two(restart="never", output="./models"), train=scripts.ONE_FAILS))
    result = folder.yurt("publish", "job")
    assert result.returncode == 2
    assert "has not trained to its end" in result.stderr
