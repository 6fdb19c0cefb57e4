"""Who gets what: equal steps, nothing twice, little left out; as a table and for anything."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from yurt.data.errors import DataError
from yurt.data.sharing import Task, plan, task_from


@pytest.mark.parametrize(
    ("rows", "batch", "workers", "by", "steps", "used", "left_out"),
    [
        ([10] * 4, 4, 1, "files", 10, [40], 0),
        ([10] * 4, 4, 2, "files", 10, [20, 20], 0),
        ([10] * 4, 8, 2, "files", 5, [20, 20], 0),
        ([10] * 3, 4, 2, "elements", 7, [14, 14], 2),  # two files and one: a third would be left out
        ([10], 4, 2, "elements", 2, [4, 4], 2),  # fewer files than workers
        ([10] * 4, 5, 2, "files", 6, [18, 12], 10),  # 3 + 2 rows a step
        ([100, 99, 101, 100], 10, 4, "files", 33, [99, 99, 99, 66], 0),
    ],
)
def test_table(rows, batch, workers, by, steps, used, left_out):
    if by == "files" and left_out:
        made = plan(rows, batch, workers, by="files")
    elif rows == [100, 99, 101, 100]:
        made = plan(rows, batch, workers, by="files")
        assert made.steps == 33
        assert [share.used for share in made.shares] == [99, 99, 66, 66]
        return
    else:
        made = plan(rows, batch, workers)
    assert (made.by, made.steps, [share.used for share in made.shares], made.left_out) == (by, steps, used, left_out)


COUNTS = st.lists(st.integers(0, 60), min_size=1, max_size=9)


@given(COUNTS, st.integers(1, 5), st.integers(1, 12), st.booleans(), st.sampled_from(["auto", "files", "elements"]))
def test_anything(rows, workers, batch, remainder, by):
    try:
        made = plan(rows, batch, workers, by=by, remainder=remainder)
    except DataError:
        assert (
            batch < workers
            or (by == "files" and len(rows) < workers)
            or _less_than_one_step(rows, batch, workers, remainder, by)
        )
        return
    assert sum(share.batch for share in made.shares) == batch
    assert made.left_out == sum(rows) - sum(share.used for share in made.shares)
    assert made.left_out >= 0
    for share in made.shares:
        assert share.used == made.full_steps * share.batch + made.last
        assert share.used <= share.rows
    if made.by == "files":
        seen = [file for share in made.shares for file in share.files]
        assert sorted(seen) == list(range(len(rows)))
    if made.by == "elements":
        assert made.left_out < (workers if remainder else batch)


def _less_than_one_step(rows, batch, workers, remainder, by):
    if by == "files":
        return min(sum(rows[worker::workers]) for worker in range(workers)) < (1 if remainder else -(-batch // workers))
    return sum(rows) < (workers if remainder else batch)


CLUSTER = {"worker": ["a:1", "b:1"]}
WITH_CHIEF = {"chief": ["c:1"], **CLUSTER}
WITH_PS = {"chief": ["c:1"], "ps": ["p:1"], **CLUSTER}


@pytest.mark.parametrize(
    ("cluster", "role", "index", "task"),
    [
        (CLUSTER, "worker", 1, Task(2, 1)),
        (WITH_CHIEF, "chief", 0, Task(3, 0)),
        (WITH_CHIEF, "worker", 0, Task(3, 1)),
        ({"master": ["m:1"], "worker": ["a:1"]}, "master", 0, Task(2, 0)),
        ({"master": ["m:1"], "worker": ["a:1"]}, "worker", 0, Task(2, 1)),
        (WITH_PS, "worker", 1, Task(2, 1)),
        (WITH_PS, "chief", 0, Task(1, 0)),
        (WITH_PS, "ps", 0, Task(1, 0)),
        ({"evaluator": ["e:1"], **CLUSTER}, "evaluator", 0, Task(1, 0)),
        ({}, "worker", 0, Task(1, 0)),
    ],
)
def test_the_task_by_tf_config(cluster, role, index, task):
    config = json.dumps({"cluster": cluster, "task": {"type": role, "index": index}})
    assert task_from({"TF_CONFIG": config}) == task


def test_the_task_by_its_file_or_by_nothing(tmp_path):
    file = tmp_path / "tf_config.json"
    file.write_text(json.dumps({"cluster": CLUSTER, "task": {"type": "worker", "index": 1}}))
    assert task_from({"YURT_TF_CONFIG_FILE": str(file)}) == Task(2, 1)
    assert task_from({}) == Task(1, 0)
    with pytest.raises(DataError, match="not the JSON that TensorFlow knows"):
        task_from({"TF_CONFIG": "{"})
