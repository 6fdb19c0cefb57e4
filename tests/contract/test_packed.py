"""A specification as one value of the store: small however many tasks, and without secrets."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from tests.contract.test_values import SPEC
from yurt.contract.packed import LARGEST_BYTES, head, pack_spec, packed, unpack_spec, unpacked
from yurt.contract.spec import RunSpec, TaskSpec


def spec_of(tasks) -> RunSpec:
    return replace(SPEC, tasks=tuple(tasks))


def test_a_run_comes_back_as_it_was():
    tasks = [
        TaskSpec("chief", 0, ("python", "a.py")),
        TaskSpec("worker", 0, ("python", "a.py"), {"A": "1"}, cpus=2.0, memory_bytes=1 << 30, gpus=1),
        TaskSpec("worker", 1, ("python", "a.py"), {"A": "1"}, cpus=2.0, memory_bytes=1 << 30, gpus=1),
        TaskSpec("worker", 2, ("python", "b.py"), {"A": "1"}),
        TaskSpec("worker", 4, ("python", "b.py"), {"A": "1"}),
        TaskSpec("ps", 0, None),
    ]
    spec = spec_of(tasks)
    data = pack_spec(spec)
    assert unpack_spec(data) == spec
    assert len(json.loads(data)["tasks"]) == 5, "a stretch of equal tasks once"


def test_no_secret_is_stored():
    env = {"WANDB_API_KEY": "hush-1", "DB_PASSWORD": "hush-2", "MY_TOKEN": "hush-3", "EPOCHS": "3"}
    spec = spec_of([TaskSpec("worker", index, ("a",), env) for index in range(2)])
    data = pack_spec(spec)
    assert b"hush" not in data
    assert unpack_spec(data).task("worker/1").env["EPOCHS"] == "3"


def test_ten_thousand_tasks_with_long_commands_are_one_value():
    long = tuple(f"--option-{number}=/a/long/path/to/something/{number * 7919}" for number in range(200))
    alike = spec_of(TaskSpec("worker", index, long) for index in range(10_000))
    assert len(pack_spec(alike)) < 16_384
    assert unpack_spec(pack_spec(alike)) == alike
    differ = spec_of(TaskSpec("worker", index, (*long, str(index))) for index in range(10_000))
    data = pack_spec(differ)
    assert len(data) <= LARGEST_BYTES
    assert [task.name for task in unpack_spec(data).tasks] == [task.name for task in differ.tasks]


def test_what_no_compression_can_make_small_is_left_out():
    spec = spec_of([TaskSpec("worker", 0, ("a", os.urandom(LARGEST_BYTES).hex()), {"A": "1"}), TaskSpec("ps", 0, None)])
    back = unpack_spec(pack_spec(spec))
    assert back == spec_of([TaskSpec("worker", 0, ()), TaskSpec("ps", 0, None)])


def test_a_head_has_no_tasks():
    assert RunSpec.from_json(head(SPEC)) == replace(SPEC, tasks=())


@pytest.mark.parametrize("data", [b"", b"nonsense", b"\x78\x9cbroken", b"{"])
def test_other_bytes_are_refused(data):
    with pytest.raises(ValueError, match=r"."):
        unpacked(data)
    assert unpacked(packed([1, "x" * 100_000])) == [1, "x" * 100_000]
