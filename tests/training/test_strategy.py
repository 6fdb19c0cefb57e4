"""`training.strategy`: the right one by name, run or TF_CONFIG; every wrong TF_CONFIG in one sentence; peers that stop."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys

import pytest

from tests.support.runs import wait_until
from tests.training.pairs import environment, finish, gang, ports, start
from yurt.training import strategies
from yurt.training.errors import TrainingError
from yurt.training.place import Place, place, tell_tensorflow
from yurt.training.strategies import _wanted
from yurt.training.waiting import telling_who_is_missing

HOSTS = ["10.0.0.1:1", "10.0.0.2:1"]


def config(cluster, role="worker", index=0, **more):
    return json.dumps({"cluster": cluster, "task": {"type": role, "index": index}, **more})


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("{", "TF_CONFIG is no JSON: Expecting property name"),
        ("[]", "TF_CONFIG is no JSON object but"),
        ('{"cluster": 3, "task": {}}', "TF_CONFIG's cluster is no object"),
        (json.dumps({"cluster": {"worker": HOSTS}}), "TF_CONFIG does not say which task this is"),
        (config({"worker": HOSTS}, index=2), "this is worker/2 by TF_CONFIG, and its cluster has 2 workers"),
        (config({"worker": HOSTS}, index=-1), "gives this task the index -1"),
        (config({"worker": HOSTS}, index="one"), "gives this task the index 'one'"),
        (config({"worker": HOSTS}, role="boss"), "gives this task the role 'boss'"),
        (config({"worker": HOSTS}, role="chief"), "this is chief/0 by TF_CONFIG, and its cluster has no chief"),
        (config({"boss": HOSTS}), "TF_CONFIG's cluster has the role 'boss'"),
        (config({"chief": HOSTS}, role="chief"), "TF_CONFIG's cluster has 2 chiefs"),
        (config({"chief": HOSTS[:1], "master": HOSTS[1:]}), "TF_CONFIG's cluster has a chief and a master"),
        (config({"worker": "10.0.0.1:1"}), "TF_CONFIG's addresses of worker are no list"),
        (config({"worker": ["10.0.0.1", "10.0.0.2:1"]}), "worker/0 has the address '10.0.0.1'"),
        (config({"worker": ["10.0.0.1:1", "10.0.0.2:0"]}), "worker/1 has the address '10.0.0.2:0'"),
        (config({"worker": ["fd00::1:1"]}), r"worker/0 has the address 'fd00::1:1' in TF_CONFIG \(\[fd00::1\]:1\)"),
        (config({"worker": HOSTS[:1] * 2}), "gives worker/0 and worker/1 the same address, 10.0.0.1:1"),
        (config({"worker": HOSTS, "ps": HOSTS[1:]}), "gives worker/1 and ps/0 the same address"),
        (config({"worker": [HOSTS[0], "localhost:1"]}), "worker/1 has the address localhost:1 in TF_CONFIG, which its"),
    ],
)
def test_each_fault_is_one_sentence(text, sentence):
    with pytest.raises(TrainingError, match=sentence) as caught:
        place({"TF_CONFIG": text})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["", " ", "{}", '{"cluster": {}, "task": {}}', '{"environment": "cloud"}'])
def test_without_a_cluster_a_task_is_alone(text):
    assert place({"TF_CONFIG": text}) == place({}) == Place()
    assert Place().leads


def test_what_people_write_is_taken(tmp_path):
    both = {"master": ("10.0.0.1:1",), "worker": ("10.0.0.2:1",)}
    text = config({**both, "evaluator": ["10.0.0.3:1"], "ps": []}, role="master", index="0", environment="cloud")
    chief = Place("chief", 0, {"chief": both["master"], "worker": both["worker"]})
    assert place({"TF_CONFIG": text}) == chief
    assert chief.leads
    assert chief.training == 2
    evaluator = place({"TF_CONFIG": config(both, role="evaluator")})
    assert (evaluator.role, evaluator.leads) == ("evaluator", False)
    assert place({"TF_CONFIG": config({"worker": ["localhost:1", "127.0.0.1:2"]})}).training == 2
    assert place({"TF_CONFIG": config({"worker": ["localhost-1.lab:1", "10.0.0.2:1"]})}).training == 2
    assert place({"TF_CONFIG": config({"worker": ["[fd00::1]:1", "[fd00::2]:1"]})}).training == 2
    (tmp_path / "tf_config.json").write_text(text)
    assert place({"YURT_TF_CONFIG_FILE": str(tmp_path / "tf_config.json")}) == chief


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (config({"worker": HOSTS}, environment="cloud"), None),
        (config({"worker": HOSTS}, index="1"), None),
        ("", ""),
        (config({"master": HOSTS[:1], "worker": HOSTS[1:]}), config({"chief": HOSTS[:1], "worker": HOSTS[1:]})),
        (config({"worker": HOSTS, "evaluator": ["10.0.0.3:1"]}), config({"worker": HOSTS})),
        (config({"worker": HOSTS}, role="evaluator"), None),
    ],
)
def test_tensorflow_gets_another_text_only_where_it_must(monkeypatch, given, told):
    monkeypatch.setenv("TF_CONFIG", given)
    tell_tensorflow(place())
    assert os.environ.get("TF_CONFIG", "") == (given if told is None else told)
    assert ("TF_CONFIG" in os.environ) == bool(given)


ONE, TWO = {"worker": HOSTS[:1]}, {"worker": HOSTS}
SERVERS = {"chief": HOSTS[:1], "ps": HOSTS[1:]}


@pytest.mark.parametrize(
    ("name", "of_the_run", "role", "cluster", "gpus", "chosen"),
    [
        (None, None, "worker", {}, 0, "one-device"),
        (None, None, "worker", {}, 4, "mirrored"),
        (None, None, "worker", ONE, 1, "one-device"),
        (None, None, "worker", TWO, 0, "multi-worker-mirrored"),
        (None, None, "chief", SERVERS, 0, "parameter-server"),
        (None, "none", "worker", ONE, 4, "mirrored"),
        (None, "none", "worker", TWO, 4, "none"),
        (None, "one-device", "worker", {}, 4, "one-device"),
        (None, "multi-worker-mirrored", "worker", ONE, 0, "multi-worker-mirrored"),
        (None, "parameter-server", "ps", SERVERS, 0, "parameter-server"),
        (None, "parameter-server", "evaluator", SERVERS, 0, "one-device"),
        (None, "multi-worker-mirrored", "evaluator", TWO, 2, "mirrored"),
        ("none", "multi-worker-mirrored", "worker", TWO, 2, "none"),
        ("mirrored", None, "worker", {}, 0, "mirrored"),
    ],
)
def test_which_one(monkeypatch, name, of_the_run, role, cluster, gpus, chosen):
    monkeypatch.setattr(strategies, "_gpus", lambda: gpus)
    monkeypatch.delenv("YURT_STRATEGY", raising=False)
    if of_the_run:
        monkeypatch.setenv("YURT_STRATEGY", of_the_run)
    assert _wanted(name, Place(role, 0, cluster)) == chosen


@pytest.mark.parametrize(
    ("name", "cluster", "sentence"),
    [
        ("miror", {}, r"there is no strategy 'miror' \(did you mean mirrored\?\)"),
        ("parameter-server", TWO, "TF_CONFIG's cluster has no ps"),
        ("multi-worker-mirrored", SERVERS, "has ps tasks, which multi-worker-mirrored does not know"),
        ("mirrored", TWO, "^mirrored trains in one task, and TF_CONFIG names 2"),
    ],
)
def test_which_one_cannot_be(name, cluster, sentence):
    with pytest.raises(TrainingError, match=sentence):
        _wanted(name, Place("chief" if "chief" in cluster else "worker", 0, cluster))


def test_a_time_that_is_too_short_is_refused():
    with pytest.raises(TrainingError, match=r"dead_after_s=0\.1 is too short"):
        strategies.strategy(dead_after_s=0.1)


def test_who_is_waited_for_is_named(capfd, monkeypatch):
    monkeypatch.delenv("YURT_RUN_ID", raising=False)
    with socket.create_server(("127.0.0.1", 0)) as there:
        port, closed = there.getsockname()[1], ports(1)[0]
        addresses = ("127.0.0.1:1", f"127.0.0.1:{port}", f"127.0.0.1:{closed}")
        told = []
        with telling_who_is_missing(Place("worker", 0, {"worker": addresses}), first_s=0.01, again_s=0.01):
            wait_until(lambda: told.append(capfd.readouterr().err) or "".join(told).count("\n") > 1, 20)
    line = f"yurt: worker/0 waits for worker/2 at 127.0.0.1:{closed}: nobody answers"
    assert "".join(told).splitlines()[:2] == [line] * 2


def run(program, code=0, **changes):
    result = subprocess.run(
        [sys.executable, "-c", program],
        env=environment(PYTHONPATH="", **changes),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert result.returncode == code, result.stderr
    return result.stderr if code else result.stdout


@pytest.mark.tensorflow
def test_too_late_is_said_with_the_right_order():
    program = "import tensorflow as tf\nx = tf.constant(1) + 1\nfrom yurt import training\ntraining.strategy()\n"
    told = run(program, code=1, TF_CONFIG=config({"worker": [f"127.0.0.1:{port}" for port in ports(2)]}))
    last = told.strip().splitlines()[-1]
    assert "TensorFlow has computed something before training.strategy() was called (call it right after" in last


@pytest.mark.tensorflow
def test_an_evaluator_and_a_process_alone_get_what_they_have():
    program = (
        "from yurt import training\nfirst = training.strategy()\nprint(type(first).__name__, training.strategy() is first)\n"
        "try:\n    training.strategy('mirrored')\nexcept training.TrainingError as error:\n    print(error)\n"
        "try:\n    training.coordinator()\nexcept training.TrainingError as error:\n    print(error)\n"
    )
    alone = run(program, TF_CONFIG="").splitlines()
    assert alone == [
        "_DefaultDistributionStrategy True",
        "this process has one-device already, and cannot have mirrored as well",
        "_DefaultDistributionStrategy has no coordinator (parameter-server has one; otherwise strategy.run makes a step)",
    ]
    evaluator = config({"chief": HOSTS[:1], "worker": HOSTS[1:]}, role="evaluator")
    assert run(program, TF_CONFIG=evaluator, YURT_STRATEGY="multi-worker-mirrored").splitlines() == alone


@pytest.mark.tensorflow
def test_parameter_servers_serve_without_a_branch_in_the_script(tmp_path):
    """With as many threads between operations as never answer: one."""
    roles = {"chief": 1, "worker": 2, "ps": 1}
    threads = {"TF_NUM_INTEROP_THREADS": "1"}
    ended = gang("any_role.py", tmp_path, roles=roles, only=["chief-0"], PYTHONPATH="", **threads)
    assert ended["chief-0"].code == 0, ended["chief-0"].errors[-2000:]
    assert ended["chief-0"].cases()["chief"]["value"] == {
        "strategy": "ParameterServerStrategyV2",
        "same": True,
        "down": True,
        "count": 10,
        "saved": "model/line.keras",
        "loads": 9,
    }
    assert [ended[name].output for name in ("worker-1", "ps-0")] == ["worker/1 serves\n", "ps/0 serves\n"]


@pytest.mark.tensorflow
@pytest.mark.parametrize("victim", [1, 0])
def test_a_suspended_peer_ends_the_other(tmp_path, victim):
    """The leader, worker/0, hosts the service that counts heartbeats; both ways are seen."""
    cluster = {"worker": [f"127.0.0.1:{port}" for port in ports(2)]}
    folders = [tmp_path / "0", tmp_path / "1"]
    started = [
        start("suspended.py", folder, PYTHONPATH="", SHARED=str(tmp_path), TF_CONFIG=config(cluster, index=index))
        for index, folder in enumerate(folders)
    ]
    try:
        wait_until(lambda: all((tmp_path / f"trains-{index}").exists() for index in range(2)), 120, "training")
        os.kill(started[victim].pid, signal.SIGSTOP)
        code = started[1 - victim].wait(120)
    finally:
        for process in started:
            process.kill()
        ended = finish(started, folders, 20)
    assert code == 1
    assert ended[1 - victim].cases()["noticed"]["value"] in ("UnavailableError", "DeadlineExceededError")
