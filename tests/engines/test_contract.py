"""What is the same on every engine: the same small jobs, the same assertions."""

from __future__ import annotations

import json
import secrets

import pytest

from tests.support.engines_there import ENGINES, assert_nothing_left, forget
from tests.support.runs import Folder, wait_until

NASTY = "a 'b' \"c\" $(HOME) $$(X) ${HOME} $${x} %{y} %%{z} {{ env }} <<<~ $$ \\n\n\t~>>> ü # !"
SHOWS = """
import json, os, subprocess, sys, time
said = {
    "arguments": sys.argv[1:], "text": os.environ["TEXT"], "beside": open("beside.py").read(),
    "config": json.loads(os.environ["TF_CONFIG"]), "tool": subprocess.run(["./tool.sh"], capture_output=True).returncode,
    "index": os.environ["YURT_INDEX"], "model_dir": os.path.isdir(os.environ["YURT_MODEL_DIR"]),
}
print("SAID " + json.dumps(said), flush=True)
for number in range(2000):
    print("line", number)
sys.stdout.flush()
while not os.path.exists(os.environ["ENOUGH"]):
    time.sleep(0.05)
"""
EVALUATES = "import os, sys\nprint('SAID ' + os.environ['TF_CONFIG'], flush=True)\nsys.exit(1)\n"
ALONE = """
import json, os
print("SAID " + os.environ["TF_CONFIG"], flush=True)
open(os.environ["YURT_MODEL_DIR"] + "/model.txt", "w").write("a model")
"""
WAITS = """
import os, signal, sys, time
def end(number, frame):
    print("told to end", flush=True)
    sys.exit(143)
signal.signal(signal.SIGTERM, end)
print("generation", os.environ["YURT_GENERATION"], flush=True)
while not os.path.exists(os.environ["ENOUGH"]):
    time.sleep(0.05)
"""
FAILS = """
import os, sys, time
if os.environ["YURT_INDEX"] == "1":
    print("reading", flush=True)
    sys.exit(3)
time.sleep(600)
"""
LATE = """
import os, time
if os.environ["YURT_INDEX"] == "1":
    time.sleep(3)
print("end of", os.environ["YURT_INDEX"], flush=True)
"""


@pytest.fixture(scope="module", params=list(ENGINES))
def there(request):
    """Each engine in turn; those that are not there are skipped by name."""
    with ENGINES[request.param](request) as found:
        yield found


class Contract:
    """A person's folder for runs of one engine."""

    def __init__(self, there, path) -> None:
        self.there = there
        self.folder = Folder(path, there.environment)
        self.enough_file = f"/tmp/yurt-contract-{secrets.token_hex(6)}"

    def start(self, script, *, files=None, **changes):
        job = {
            "name": "contract",
            "command": "python train.py",
            "roles": {"worker": 2},
            "restart": "never",
            "start_deadline": 120,
            "grace": 5,
            **self.there.values,
            **changes,
        }
        job["env"] = {"ENOUGH": self.enough_file, **changes.get("env", {})}
        file = self.folder.write(job, train=script)
        for name, (text, mode) in (files or {}).items():
            (file.parent / name).write_text(text)
            (file.parent / name).chmod(mode)
        return self.folder.start(file, "--on", self.there.name)

    def started(self, run, generation):
        """The members, once all have said that they are of this generation."""
        for task in ("worker/0", "worker/1"):
            run.wait_for_line(task, f"generation {generation}", 120)

        def told():
            now = run.snapshot()
            there = now["state"]["generation"] == generation and {m["status"] for m in now["members"]} == {"started"}
            return there and {member["task"]: member for member in now["members"]}

        return wait_until(told, 30, f"the members of generation {generation}")

    def enough(self, run, *tasks) -> None:
        for task in tasks:
            self.there.inside(run, task, f": >{self.enough_file}")

    def close(self) -> None:
        for run_id in self.folder.run_ids():
            self.folder.yurt("stop", "--now", run_id)
        forget(self.enough_file)


@pytest.fixture
def contract(there, tmp_path):
    made = Contract(there, tmp_path)
    yield made
    made.close()


def said(run, task):
    line = next(line for line in run.log(task).splitlines() if line.startswith("SAID "))
    return json.loads(line.removeprefix("SAID "))


@pytest.fixture(scope="module")
def shown(there, tmp_path_factory):
    """A run of two workers and an evaluator that succeeded."""
    made = Contract(there, tmp_path_factory.mktemp("shown"))
    files = {"beside.py": (NASTY, 0o644), "evaluate.py": (EVALUATES, 0o644), "tool.sh": ("#!/bin/sh\nexit 7\n", 0o755)}
    roles = {"worker": 2, "evaluator": {"command": "python evaluate.py"}}
    command = ["python", "train.py", "--text", NASTY]
    try:
        run = made.start(SHOWS, files=files, roles=roles, command=command, env={"TEXT": NASTY})
        for task in ("worker/0", "worker/1"):
            run.wait_for_line(task, "line 1999\n", 120)
        run.wait_for_line("evaluator/0", "SAID")
        made.enough(run, "worker/0", "worker/1")
        run.wait()
        yield run
    finally:
        made.close()


def test_success_is_a_verdict_and_an_exit_code_whatever_the_evaluator_does(there, shown):
    assert shown.process.returncode == 0, shown.output
    assert shown.state()["verdict"]["outcome"] == "succeeded"
    assert shown.member("evaluator/0")["exit"]["code"] == 1
    assert shown.state()["restarts"] == 0
    assert_nothing_left(there, shown)


def test_text_arrives_letter_for_letter(shown):
    for index in ("0", "1"):
        told = said(shown, f"worker/{index}")
        assert told["arguments"] == ["--text", NASTY]
        assert (told["text"], told["beside"]) == (NASTY, NASTY)
        assert told["index"] == index


def test_files_travel_with_their_executable_bit(shown):
    assert said(shown, "worker/1")["tool"] == 7


def test_every_task_has_its_tf_config_and_no_worker_sees_the_evaluator(shown):
    configs = [said(shown, f"worker/{index}")["config"] for index in (0, 1)]
    assert configs[0]["cluster"] == configs[1]["cluster"]
    assert set(configs[0]["cluster"]) == {"worker"}
    assert len(set(configs[0]["cluster"]["worker"])) == 2
    assert [config["task"] for config in configs] == [{"type": "worker", "index": index} for index in (0, 1)]
    assert said(shown, "evaluator/0")["task"] == {"type": "evaluator", "index": 0}


def test_output_is_whole_and_in_order(shown):
    for task in ("worker/0", "worker/1"):
        lines = [line for line in shown.log(task).splitlines() if line.startswith("line ")]
        assert lines == [f"line {number}" for number in range(2000)]


def test_one_task_has_a_tf_config_and_its_model_is_published(there, contract, tmp_path):
    with there.shelf(tmp_path) as shelf:
        contract.folder.environment = {**contract.folder.environment, **shelf.env}
        run = contract.start(ALONE, roles={"worker": 1}, strategy="none", output=shelf.output, env=shelf.env)
        assert run.wait() == 0, run.output
        assert shelf.read(run.run_id) == "a model"
    config = said(run, "worker/0")
    assert (list(config["cluster"]), len(config["cluster"]["worker"])) == (["worker"], 1)
    assert config["task"] == {"type": "worker", "index": 0}
    assert run.run_id in run.state()["published"]["url"]
    assert_nothing_left(there, run)


def test_the_first_task_that_fails_ends_the_run_and_is_named(there, contract):
    run = contract.start(FAILS)
    assert run.wait() == 1, run.output
    verdict = run.state()["verdict"]
    assert (verdict["outcome"], verdict["task"]) == ("failed", "worker/1")
    assert verdict["message"] == "worker/1 failed with exit code 3"
    assert run.member("worker/0")["exit"]["reason"] == "stopped"
    assert_nothing_left(there, run)


def test_a_signal_is_named_and_the_limit_of_restarts_holds(there, contract):
    script = "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"
    run = contract.start(script, restart="on-failure", max_restarts=1)
    assert run.wait() == 1, run.output
    state = run.state()
    assert (state["verdict"]["outcome"], state["restarts"]) == ("failed", 1)
    assert "was killed by SIGKILL (exit code 137)" in state["causes"][0]["message"]
    assert "the limit of 1 restart is used up" in run.output
    assert_nothing_left(there, run)


def test_a_killed_process_is_started_again_in_its_place_and_a_stop_asks_first(there, contract):
    run = contract.start(WAITS, restart="on-failure")
    before = contract.started(run, 0)
    there.inside(run, "worker/1", f"kill -9 {before['worker/1']['pid']}")
    after = contract.started(run, 1)
    assert {task: each["allocation"] for task, each in after.items()} == {
        task: each["allocation"] for task, each in before.items()
    }
    assert run.state()["restarts"] == 1
    assert contract.folder.yurt("stop", run.run_id).returncode == 0
    assert run.wait() == 4, run.output
    assert run.state()["verdict"]["outcome"] == "cancelled"
    assert "told to end" in run.log("worker/1").rpartition("generation 1")[2]
    assert_nothing_left(there, run)


def test_all_workers_are_waited_for_where_all_decide(there, contract):
    run = contract.start(LATE, success="all-workers")
    assert run.wait() == 0, run.output
    assert "end of 1" in run.log("worker/1")
    assert run.state()["verdict"]["outcome"] == "succeeded"


def test_a_program_that_is_not_there_is_named(there, contract):
    run = contract.start("", command=["no-such-program", "x"])
    assert run.wait() == 1, run.output
    verdict = run.state()["verdict"]
    assert verdict["exit"]["code"] == 127
    assert "no-such-program" in verdict["message"] + run.output
    assert_nothing_left(there, run)
