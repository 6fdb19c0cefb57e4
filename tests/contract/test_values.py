"""Values survive the store; words and tables say what they should."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from yurt.contract import exits
from yurt.contract.config import AgentConfig
from yurt.contract.progress import KerasLines, clean, epoch_ended, in_words, merged
from yurt.contract.redact import HIDDEN, redacted
from yurt.contract.spec import RunSpec, TaskSpec
from yurt.contract.state import Beat, Exit, Member, RunState, Verdict
from yurt.contract.tf_config import join_host_port, seen_from_itself, split_host_port, tf_config

SPEC = RunSpec(
    run_id="r",
    job_name="j",
    strategy="none",
    tasks=(TaskSpec("worker", 0, ("a", "b c"), {"X": "é\n${HOME}"}, 1.5, 2**30, 1), TaskSpec("ps", 0, None)),
    restart="never",
    max_restarts=0,
    success="chief",
    start_deadline_s=1.0,
    deadline_s=None,
    grace_s=2.0,
    output="file:///m",
    saves_to=None,
    submitted_at=3.0,
)


def test_specification_and_configuration_survive_json():
    for spec in (SPEC, replace(SPEC, track=("tensorboard", "wandb"))):
        assert RunSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    older = {name: value for name, value in SPEC.to_json().items() if name not in ("track", "image", "keras")}
    assert RunSpec.from_json(older) == SPEC
    config = AgentConfig(
        run=SPEC, task="worker/0", allocation="a", store="http://x:1", token="t", host="h", placed_on="p",
        work_dir="w", model_dir="m", checkpoint_dir="c", state_dir="s", publisher=("p",), cpus=(0, 1),
    )  # fmt: skip
    assert AgentConfig.loads(config.dumps()) == config


def test_state_survives_the_store():
    end = Exit(code=137, reason="signal", at=1.0, signal=9, attempt=2, last_lines=("a", "b"))
    member = Member("worker/0", "a", "h:1", "exited", exit=end, unreachable=(("p", "a", "e"),), published={"ok": True})
    assert Member.loads(member.dumps(), 7) == member
    assert Member.loads(member.dumps(), 7).order == 7
    state = RunState.first(1.0).ended(Verdict("failed", "m", "worker/0", end, "h"), 2.0, 1.0)
    assert RunState.loads(state.dumps()) == state
    assert Beat.loads(Beat(1.0, {"loss": 1}).dumps()) == Beat(1.0, {"loss": 1})


@pytest.mark.parametrize(
    ("code", "never", "on_failure", "exit_code", "always"),
    [
        (0, False, False, False, False),
        (1, False, True, False, True),
        (2, False, True, False, True),
        (126, False, True, False, True),
        (127, False, True, False, True),
        (128, False, True, True, True),
        (130, False, True, True, True),
        (137, False, True, True, True),
        (138, False, True, True, True),
        (139, False, True, True, True),
        (143, False, True, True, True),
    ],
)
def test_which_exit_codes_may_be_tried_again(code, never, on_failure, exit_code, always):
    end = Exit(code=code, reason="exit", at=0.0)
    policies = ("never", "on-failure", "exit-code", "always")
    assert [exits.may_restart(policy, end) for policy in policies] == [never, on_failure, exit_code, always]


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (Exit(1, "exit", 0), "failed with exit code 1"),
        (Exit(137, "signal", 0, signal=9), "was killed by SIGKILL (exit code 137)"),
        (Exit(137, "out-of-memory", 0, signal=9), "ran out of memory and was killed (exit code 137)"),
        (Exit(137, "lost", 0, message="node m2 is down"), "was lost: its agent is gone (node m2 is down)"),
        (Exit(127, "preflight", 0, message="no script"), "could not start: no script"),
        (Exit(1, "wants-legacy-keras", 0, message="no lr"), "needs legacy Keras (no lr)"),
        (Exit(0, "exit", 0), "finished"),
        (Exit(143, "exit", 0), "was interrupted (exit code 143)"),
        (Exit(143, "signal", 0, signal=15), "was killed by SIGTERM (exit code 143)"),
    ],
)
def test_ends_in_words(end, words):
    assert exits.in_words(end) == words


def test_a_task_that_does_not_reach_itself_stands_with_a_loopback_in_its_own_cluster_alone():
    cluster = {"chief": ["a:1"], "worker": ["b:2", "[fd00::1]:3"]}
    assert seen_from_itself(cluster, "worker", 1, "[fd00::1]:3") == {"chief": ["a:1"], "worker": ["b:2", "127.0.0.1:3"]}
    assert seen_from_itself(cluster, "evaluator", 0, "c:4") == cluster
    assert cluster["worker"] == ["b:2", "[fd00::1]:3"]


def test_tf_config_of_a_worker_and_of_an_evaluator():
    cluster = {"worker": ["a:1", "b:2"]}
    assert json.loads(tf_config(cluster, "worker", 1, "b:2")) == {
        "cluster": cluster,
        "task": {"type": "worker", "index": 1},
    }
    own = json.loads(tf_config(cluster, "evaluator", 0, "c:3"))
    assert own["cluster"] == {**cluster, "evaluator": ["c:3"]}


def test_addresses_with_brackets_where_tensorflow_needs_them():
    assert join_host_port("::1", 5) == "[::1]:5"
    assert split_host_port("[::1]:5") == ("::1", 5)
    assert split_host_port("host:80") == ("host", 80)
    with pytest.raises(ValueError, match="no port"):
        split_host_port("host")


KERAS = [
    (
        "10/10 - 1s - loss: 0.5000 - val_loss: 0.4000 - 1s/epoch - 106ms/step",
        {"loss": 0.5, "metrics": {"val_loss": 0.4}},
    ),
    ("10/10 - 1s - 106ms/step - loss: 5.0e-05 - mae: nan", {"loss": 5e-5}),
    (" 3/10 [======>.......] - ETA: 2s - loss: 0.7000", {"step": 3, "loss": 0.7}),
    (
        "\x1b[1m 3/10\x1b[0m \x1b[32m━━━━\x1b[0m\x1b[37m━━━\x1b[0m \x1b[1m0s\x1b[0m 24ms/step - loss: 0.7",
        {"step": 3, "loss": 0.7},
    ),
    ("1/10 [>....] - loss: 0.9\b\b\b\b\b\b 2/10 [=>...] - ETA: 0s - loss: 0.8", {"step": 2, "loss": 0.8}),
]


@pytest.mark.parametrize(("line", "told"), KERAS)
def test_progress_is_read_off_what_keras_prints(line, told):
    reader = KerasLines()
    assert reader.feed("Epoch 2/5")
    assert reader.feed(clean(line))
    assert reader.progress["epoch"] == 2
    assert {key: reader.progress[key] for key in told} == told


@pytest.mark.parametrize("line", ["", "hello", "2021/05/06 - it rains", "loss: 3", "1/2", "Epoch of doom"])
def test_other_lines_tell_nothing(line):
    reader = KerasLines()
    assert not reader.feed(line)
    assert reader.progress == {}


@pytest.mark.parametrize(
    ("progress", "ended"),
    [
        ({}, False),
        ({"epoch": 1, "epochs": 5, "step": 7, "steps": 8}, False),
        ({"epoch": 1, "step": 8, "steps": 8}, True),
        ({"epoch": 1, "step": 8}, False),
        ({"epoch": 2}, True),
        ({"step": 8, "steps": 8}, True),
    ],
)
def test_whether_an_epoch_has_ended(progress, ended):
    assert epoch_ended(progress) == ended


def test_progress_in_words():
    progress = merged(
        {"epoch": 1, "loss": 0.5}, {"epoch": 3, "epochs": 20, "step": 17, "steps": 25, "examples_per_s": 51234.0}
    )
    assert in_words(progress) == "epoch 3/20, step 17/25, loss 0.5, 51,234 examples/s"


def test_secrets_are_hidden_by_name():
    shown = redacted({"AWS_SECRET_ACCESS_KEY": "a", "HF_TOKEN": "b", "db_password": "c", "EPOCHS": "3", "KEY": ""})
    assert shown == {
        "AWS_SECRET_ACCESS_KEY": HIDDEN,
        "HF_TOKEN": HIDDEN,
        "db_password": HIDDEN,
        "EPOCHS": "3",
        "KEY": "",
    }


@pytest.mark.parametrize(
    ("told", "words"),
    [
        (0.05, "5 % waiting for input"),
        (0.123, "12 % waiting for input"),
        (1, "100 % waiting for input"),
        (0.049, ""),
        (0, ""),
        (-1, ""),
        (7, ""),
        (float("nan"), ""),
        ("much", ""),
        (None, ""),
    ],
)
def test_waiting_for_input_in_words(told, words):
    assert in_words({"input_wait": told}) == words
