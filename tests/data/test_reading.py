"""The pipelines of several workers together: what each sees, in which order, in how many steps."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from yurt.data import DataError, read, write

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def numbers(dataset) -> list[list[int]]:
    """The rows of each step."""
    return [batch["x"].numpy().tolist() for batch in dataset]


def flat(lists) -> list:
    return list(itertools.chain.from_iterable(lists))


def make(path, rows, shards, **options):
    write(path, {"x": np.arange(rows)}, shards=shards, **options)
    return path


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("shards", [1, 2, 5])
@pytest.mark.parametrize("packed", [None, 8])
@pytest.mark.parametrize("shuffle", [False, True])
def test_equal_steps_and_disjoint_cover(tf, tmp_path, workers, shards, packed, shuffle):
    path = make(tmp_path / "set", 97, shards, packed=packed)
    every, steps = [], set()
    for index in range(workers):
        data = read(path, batch=12, workers=workers, index=index, epochs=1, remainder=True, shuffle=shuffle, seed=3)
        seen = numbers(data.dataset())
        assert len(seen) == data.steps
        assert [len(step) for step in seen] == [12 // workers] * data.plan.full_steps + [data.plan.last] * bool(
            data.plan.last
        )
        steps.add(data.steps)
        every += [row for step in seen for row in step]
    assert len(steps) == 1
    assert len(every) == len(set(every)) == data.examples
    assert data.examples >= 97 - data.plan.left_out


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("packed", [None, 8])
def test_by_elements_many_workers_see_the_batches_of_one(tf, tmp_path, shuffle, packed):
    path = make(tmp_path / "set", 100, 4, packed=packed)
    options = {"batch": 10, "epochs": 2, "shuffle": shuffle, "seed": 5, "by": "elements"}
    alone = numbers(read(path, workers=1, index=0, **options).dataset())
    parts = [numbers(read(path, workers=3, index=index, **options).dataset()) for index in range(3)]
    assert [[row for part in step for row in part] for step in zip(*parts, strict=True)] == alone
    if not shuffle:
        assert alone[0] == list(range(10))


def test_a_seed_is_the_same_everywhere_and_another_in_each_epoch(tf, tmp_path):
    path = make(tmp_path / "set", 200, 4)

    def order(seed, **more):
        return numbers(read(path, batch=20, shuffle=True, seed=seed, epochs=2, workers=1, index=0, **more).dataset())

    tf.random.set_seed(1)
    first = order(7)
    tf.random.set_seed(2)
    assert order(7) == first, "tf.random.set_seed changes the order"
    assert order(8) != first
    epochs = [sorted(flat(first[:10])), sorted(flat(first[10:]))]
    assert epochs == [list(range(200))] * 2
    assert first[:10] != first[10:]
    # Adjacent rows do not stay together.
    assert sum(abs(a - b) == 1 for a, b in itertools.pairwise(flat(first))) < 40


def test_a_later_place_is_as_if_it_had_never_stopped(tf, tmp_path):
    path = make(tmp_path / "set", 100, 4)
    whole = numbers(read(path, batch=10, shuffle=True, seed=1, epochs=5, workers=1, index=0).dataset())
    data = read(path, batch=10, shuffle=True, seed=1, workers=1, index=0)
    later = numbers(data.again(epoch=2, step=3).dataset().take(27))
    assert later == whole[23:]


@pytest.mark.parametrize("cache", [False, True])
def test_without_end(tf, tmp_path, cache):
    path = make(tmp_path / "set", 50, 2)
    data = read(path, batch=10, shuffle=True, cache=cache, workers=1, index=0)
    assert data.dataset().cardinality().numpy() == tf.data.INFINITE_CARDINALITY
    seen = numbers(data.dataset().take(15))
    for epoch in range(3):
        assert sorted(flat(seen[epoch * 5 : epoch * 5 + 5])) == list(range(50))
    assert seen[:5] != seen[5:10]


def test_a_cache_is_read_once(tf, tmp_path):
    path = make(tmp_path / "set", 50, 2)
    data = read(path, batch=10, cache=True, shuffle=True, workers=1, index=0)
    iterator = iter(data.dataset())
    first = [next(iterator)["x"].numpy().tolist() for _ in range(6)]
    for file in tmp_path.glob("*.tfrecord"):
        file.unlink()
    later = [next(iterator)["x"].numpy().tolist() for _ in range(9)]
    assert sorted(map(sorted, [*first[5:], *later[:4]])) == sorted(map(sorted, first[:5]))


def test_the_element_spec_tells_the_rows(tf, tmp_path):
    path = make(tmp_path / "set", 50, 2)
    for packed in (None, 8):
        path = make(tmp_path / f"set{packed}", 50, 2, packed=packed)
        assert read(path, batch=10, workers=2, index=0).dataset().element_spec["x"].shape == (5,)
        assert read(path, batch=10, workers=2, index=0).for_fit().element_spec["x"].shape == (10,)


def distributed(tf, dataset, workers, index):
    """What TensorFlow makes of a dataset of global batches for one worker."""
    from tensorflow.python.data.experimental.ops import distribute

    size = distribute.compute_batch_size(dataset)
    assert size.numpy() > 0, "TensorFlow does not see the global batch"
    return dataset.rebatch(distribute.batch_sizes_for_worker(size, workers, 1, index))


@pytest.mark.parametrize("epochs", [None, 1, 2])
@pytest.mark.parametrize("cache", [False, True])
def test_for_fit_each_step_is_a_global_batch(tf, tmp_path, epochs, cache):
    path = make(tmp_path / "set", 96, 4)
    parts = []
    for index in range(2):
        data = read(path, batch=12, shuffle=True, seed=1, epochs=epochs, cache=cache, workers=2, index=index)
        steps = data.steps * (epochs or 2)
        parts.append(numbers(distributed(tf, data.for_fit(), 2, index).take(steps)))
    assert [len(part) for part in parts] == [steps, steps]
    together = [a + b for a, b in zip(*parts, strict=True)]
    assert {len(step) for step in together} == {12}
    for epoch in range(epochs or 2):
        assert sorted(flat(together[epoch * data.steps : (epoch + 1) * data.steps])) == list(range(96))


def test_for_fit_with_a_rest(tf, tmp_path):
    path = make(tmp_path / "set", 103, 4)
    parts = []
    for index in range(2):
        data = read(path, batch=12, epochs=1, remainder=True, workers=2, index=index)
        parts.append(numbers(distributed(tf, data.for_fit(), 2, index)))
        assert len(parts[-1]) == data.steps
    assert sorted(flat(flat(parts))) != []
    assert len({row for part in parts for step in part for row in step}) == data.examples >= 102


def test_for_fit_refuses_what_it_cannot_cut(tf, tmp_path):
    data = read(make(tmp_path / "set", 96, 4), batch=13, workers=2, index=0)
    with pytest.raises(DataError, match="cannot cut a global batch of 13 rows into 2 equal parts") as raised:
        data.for_fit()
    assert raised.value.hint == "batch=12, or per_worker(strategy), which takes any"


def test_from_context_is_for_any_number_of_workers(tf, tmp_path):
    data = read(make(tmp_path / "set", 96, 4), batch=12, epochs=1, workers=1, index=0)
    rows = []
    for index in range(3):
        rows += numbers(data.from_context(tf.distribute.InputContext(3, index, 3)))
    assert {len(step) for step in rows} == {4}
    assert sorted(flat(rows)) == list(range(96))
    halves = numbers(data.from_context(tf.distribute.InputContext(1, 0, 2)))
    assert {len(step) for step in halves} == {6}


def test_the_tuner_is_off_among_several(tf, tmp_path):
    path = make(tmp_path / "set", 96, 4)
    assert read(path, batch=12, workers=2, index=0).dataset().options().autotune.enabled is False
    assert read(path, batch=12, workers=2, index=0).for_fit().options().autotune.enabled is False
    policy = read(path, batch=12, workers=2, index=0).for_fit().options().experimental_distribute.auto_shard_policy
    assert policy == tf.data.experimental.AutoShardPolicy.OFF


def test_bad_records_are_skipped_and_counted(tf, tmp_path, monkeypatch):
    path = make(tmp_path / "set", 96, 4)
    first = tmp_path / "set-00000-of-00004.tfrecord"
    content = bytearray(first.read_bytes())
    content[20] ^= 1
    first.write_bytes(content)
    last = tmp_path / "set-00003-of-00004.tfrecord"
    last.write_bytes(last.read_bytes()[:-5])
    with pytest.raises(DataError):
        read(path, batch=8, workers=1, index=0)
    monkeypatch.setenv("YURT_PROGRESS_FILE", str(tmp_path / "progress.json"))
    data = read(path, batch=2, epochs=1, bad="skip", workers=1, index=0)
    assert sorted(flat(numbers(data.dataset()))) == [row for row in range(96) if row not in (0, 95)]
    assert data.skipped == 2
    told = json.loads((tmp_path / "data.json").read_text())
    assert told["skipped"] == 2
    assert told["sets"] == [{"path": str(path), "skipped": 2, "files": {first.name: 1, last.name: 1}}]


def test_fewer_files_than_workers_is_said_in_one_line(tmp_path, capsys):
    path = make(tmp_path / "set", 96, 2)
    read(path, batch=12, workers=3, index=0)
    assert capsys.readouterr().err == (
        f"yurt: {path}: fewer files than workers (2 and 3): every worker reads all of them and keeps its part of each batch\n"
    )
    read(path, batch=12, workers=3, index=1)
    assert capsys.readouterr().err == ""
