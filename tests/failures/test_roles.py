"""Every role and strategy, on real TensorFlow processes."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.support.runs import wait_until
from tests.support.scripts import BRANCHING, COORDINATOR, MULTI_WORKER

pytestmark = pytest.mark.tensorflow

PS = {
    "name": "ps",
    "command": "python train.py",
    "strategy": "parameter-server",
    "output": "./models",
    "restart": "on-failure",
    "grace": "2s",
}
SERVERS = {"worker": {"replicas": 2, "standard_server": True}, "ps": {"replicas": 1, "standard_server": True}}


def total(folder) -> float:
    return float((folder.path / "job/models/latest/total.txt").read_text())


def test_the_script_is_the_coordinator_alone_and_the_standard_server_serves(folder):
    run = folder.start(folder.write({**PS, "roles": {"chief": 1, **SERVERS}}, train=COORDINATOR))
    assert run.wait() == 0, run.output
    assert total(folder) == 20  # twenty steps, each once
    assert [run.member(task)["exit"]["reason"] for task in ("worker/0", "ps/0")] == ["stopped", "stopped"]
    run.assert_nothing_left()


def test_a_script_that_branches_on_its_role(folder):
    run = folder.start(folder.write({**PS, "roles": {"chief": 1, "worker": 1, "ps": 1}}, train=BRANCHING))
    assert run.wait() == 0, run.output
    assert total(folder) == 20


@pytest.fixture
def endless(folder):
    """A coordinator that goes on until the run is told that it is enough, on its workers and ps."""
    enough = folder.path / "enough"
    values = {**PS, "roles": {"chief": 1, **SERVERS}, "env": {"UNTIL": str(enough)}}
    run = folder.start(folder.write(values, train=COORDINATOR))
    run.wait_for_line("worker/1", "serves")
    run.wait_for_line("worker/0", "serves")
    time.sleep(2)

    def finish() -> None:
        time.sleep(2)
        enough.touch()
        assert run.wait() == 0, run.output
        assert total(folder) >= int(run.log("chief/0").rpartition("scheduled ")[2].split()[0])
        run.assert_nothing_left()

    return run, finish


def serving_again(run, task: str) -> None:
    wait_until(lambda: run.log(task).count("serves") == 2, 90, f"{task}'s return")


@pytest.mark.parametrize("what", ["process", "agent"])
def test_a_lost_worker_comes_back_alone_at_its_address(endless, what):
    run, finish = endless
    address = run.member("worker/1")["address"]
    run.kill(run.pid("worker/1") if what == "process" else run.agent_pid("worker/1"))
    serving_again(run, "worker/1")
    finish()
    state = run.state()
    assert (state["generation"], state["restarts"], state["attempts"]) == (0, 1, {"worker/1": 1})
    assert run.member("worker/1")["address"] == address


def test_a_lost_ps_starts_the_gang_again(endless):
    run, finish = endless
    run.kill(run.pid("ps/0"))
    serving_again(run, "ps/0")
    serving_again(run, "worker/0")
    finish()
    assert (run.state()["generation"], run.state()["causes"][0]["task"]) == (1, "ps/0")


EVALUATOR = """
import os, time
seen = set()
folder = os.environ["YURT_CHECKPOINT_DIR"]
while True:
    for name in sorted(set(os.listdir(folder)) - seen):
        seen.add(name)
        print("evaluated", name, flush=True)
    time.sleep(0.1)
"""


def test_an_evaluator_beside_workers_is_in_nobodys_cluster_and_gets_a_grace_time(folder):
    script = MULTI_WORKER + "\nopen(os.environ['YURT_CHECKPOINT_DIR'] + '/last', 'w').close()\n"
    values = {
        "name": "eval",
        "command": "python train.py",
        "strategy": "multi-worker-mirrored",
        "roles": {"worker": 2, "evaluator": {"command": "python -u evaluate.py"}},
        "grace": "3s",
    }
    run = folder.start(folder.write(values, train=script, evaluate=EVALUATOR))
    assert run.wait() == 0, run.output
    assert "evaluated last" in run.log("evaluator/0")
    assert '"evaluator"' not in (run.path / "tasks/worker-0/tf_config.json").read_text()
    assert '"evaluator"' in (run.path / "tasks/evaluator-0/tf_config.json").read_text()


def test_an_evaluator_that_fails_decides_nothing(folder):
    values = {
        "name": "eval",
        "command": "python train.py",
        "roles": {"worker": 2, "evaluator": {"command": "python -c 'raise SystemExit(1)'"}},
        "restart": "never",
    }
    run = folder.start(folder.write(values, train=MULTI_WORKER))
    assert run.wait() == 0, run.output
    assert run.member("evaluator/0")["exit"]["code"] == 1


def test_chief_and_workers_and_one_device(folder):
    script = "import os\nprint('config', os.environ['TF_CONFIG'])\n" + MULTI_WORKER
    values = {"name": "cw", "command": "python train.py", "roles": {"chief": 1, "worker": 1}}
    run = folder.start(folder.write(values, train=script))
    assert run.wait() == 0, run.output
    assert '"chief": ["127.0.0.1:' in run.log("worker/0")


@pytest.mark.parametrize("strategy", ["mirrored", "one-device", "none"])
def test_strategies_of_one_task_get_a_one_worker_tf_config(folder, strategy):
    script = "import json, os\nprint(sorted(json.loads(os.environ['TF_CONFIG'])['cluster']))\n"
    values = {"name": "one", "command": "python train.py", "strategy": strategy}
    run = folder.start(folder.write(values, train=script))
    assert run.wait() == 0, run.output
    assert "['worker']" in run.log("worker/0")


def test_a_port_that_somebody_takes_is_picked_anew(folder, tmp_path: Path):
    """Another process listens on the task's port between the rendezvous and TensorFlow's start."""
    thief = (
        "import json, os, socket\n"
        "config = json.loads(os.environ['TF_CONFIG'])\n"
        "if config['task']['index'] == 1 and os.environ['YURT_GENERATION'] == '0':\n"
        "    taken = socket.socket()\n"
        "    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)\n"
        "    taken.bind(('', int(config['cluster']['worker'][1].split(':')[1])))\n"
        "    taken.listen()\n"
    )
    values = {"name": "port", "command": "python train.py", "roles": {"worker": 2}, "restart": "never"}
    run = folder.start(folder.write(values, train=thief + MULTI_WORKER))
    assert run.wait() == 0, run.output
    assert "worker/1 found its port taken by another process" in run.output
    assert run.state()["restarts"] == 1


def test_a_stopped_chief_may_still_read_its_servers(folder):
    """A chief that saves when it is told to stop finds its variables where they lie: servers end after it."""
    saves = COORDINATOR.replace("import os\n", "import os, signal, sys\n", 1).replace(
        "\n\nimport time\n",
        """

def save(number, frame):
    time.sleep(1)
    print("saved", float(total.numpy()), flush=True)
    os._exit(143)


import time
signal.signal(signal.SIGTERM, save)
print("ready", flush=True)
""",
    )
    assert "ready" in saves
    run = folder.start(
        folder.write(
            {**PS, "grace": "20s", "env": {"UNTIL": "/nowhere"}, "roles": {"chief": 1, **SERVERS}}, train=saves
        )
    )
    run.wait_for_line("chief/0", "ready")
    time.sleep(1)
    began = time.monotonic()
    assert folder.yurt("stop", run.run_id).returncode == 0
    assert run.wait() == 4, run.output
    assert run.member("chief/0")["exit"]["code"] == 143, run.log("chief/0")
    assert "\nsaved " in run.log("chief/0")
    assert time.monotonic() - began < 15
    run.assert_nothing_left()
