"""Rows a second into and out of TFRecord files: Yurt's against what people usually write, in one run.

    .venv/bin/python benchmarks/data                                    # about three minutes
    .venv/bin/python benchmarks/data --markdown docs/performance.md     # and put the table on the page

The ways take turns, each round begins with another one; the first round is not counted. A ratio is that of
one round, and what is shown is the median over the rounds. Files are in the page cache. Ways that go through the set in
a tenth of a second do so several times, so that building the pipeline counts for no more than it does in training.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import sys
import tempfile
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from yurt import data

SHAPE = (36, 10)
BATCH = 1024
SHARDS = 8
#: Passes over the set in one measurement, but for the ways that go record by record.
PASSES = 4
RECORD_BY_RECORD = ("naive", "tutorial")
#: As much of the machine as others may use before a table is marked.
QUIET = 0.05


def busy_s() -> float:
    """Processor time that anybody has used."""
    fields = [int(field) for field in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / os.sysconf("SC_CLK_TCK")


class Others:
    """The share of the machine that other processes use meanwhile."""

    def __init__(self) -> None:
        self._at, self._busy, self._own = time.perf_counter(), busy_s(), time.process_time()

    def share(self) -> float:
        spent = busy_s() - self._busy - (time.process_time() - self._own)
        return max(0.0, spent / (time.perf_counter() - self._at) / (os.cpu_count() or 1))


def files(folder: Path, name: str) -> list[str]:
    return [str(path) for path in sorted(folder.glob(f"{name}-*.tfrecord"))]


WANTED = {"window": tf.io.FixedLenFeature(SHAPE, tf.float32)}


def naive(folder: Path) -> tf.data.Dataset:
    """A record at a time."""
    records = tf.data.TFRecordDataset(files(folder, "plain"))
    return records.map(lambda record: tf.io.parse_single_example(record, WANTED)["window"]).batch(BATCH)


def tutorial(folder: Path) -> tf.data.Dataset:
    """As TensorFlow's guides put it together: everything parallel, a record at a time."""
    auto = tf.data.AUTOTUNE
    names = tf.data.Dataset.from_tensor_slices(files(folder, "plain"))
    records = names.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=auto)
    rows = records.map(lambda record: tf.io.parse_single_example(record, WANTED)["window"], num_parallel_calls=auto)
    return rows.batch(BATCH).prefetch(auto)


def only_reading(folder: Path) -> tf.data.Dataset:
    """The same records, not parsed."""
    return tf.data.TFRecordDataset(files(folder, "plain"), buffer_size=1 << 20).batch(BATCH).repeat(PASSES)


def ours(name: str, **options) -> object:
    return lambda folder: data.read(
        folder / name, batch=BATCH, epochs=PASSES, check="none", workers=1, index=0, **options
    ).dataset()


READ = {
    "naive": ("`map(parse_single_example).batch`", naive),
    "tutorial": ("TensorFlow's usual: `interleave`, parallel `map`, `batch`, `prefetch`", tutorial),
    "reading": ("only reading the records", only_reading),
    "ours": ("`yurt.data.read`", ours("plain")),
    "shuffled": ("`yurt.data.read`, shuffled", ours("plain", shuffle=True)),
    "packed": ("`yurt.data.read`, 64 rows a record", ours("packed")),
    "packed_shuffled": ("`yurt.data.read`, 64 rows a record, shuffled", ours("packed", shuffle=True)),
    "label": ("`yurt.data.read`, with an `int64` label 0 to 9, shuffled", ours("label", shuffle=True)),
    "varying": ("`yurt.data.read`, with an `int64` label 0 to 999", ours("varying")),
    "varying_shuffled": ("`yurt.data.read`, with an `int64` label 0 to 999, shuffled", ours("varying", shuffle=True)),
}


def rate(dataset: tf.data.Dataset, rows: int) -> tuple[float, float]:
    """Rows a second through a whole dataset, and microseconds of processor time a row."""
    began, cpu = time.perf_counter(), time.process_time()
    for _ in dataset:
        pass
    return rows / (time.perf_counter() - began), 1e6 * (time.process_time() - cpu) / rows


def second_epoch(folder: Path) -> float:
    """Rows a second of the second epoch from the cache."""
    made = data.read(folder / "plain", batch=BATCH, cache=True, check="none", workers=1, index=0)
    iterator = iter(made.dataset())
    for _ in range(made.steps + 1):
        next(iterator)
    epochs = 20
    began = time.perf_counter()
    for _ in range(made.steps * epochs):
        next(iterator)
    return made.examples * epochs / (time.perf_counter() - began)


def by_hand(windows: np.ndarray, path: Path) -> float:
    """Rows a second written with tf.train.Example and a float_list."""
    began = time.perf_counter()
    with tf.io.TFRecordWriter(str(path)) as writer:
        for window in windows:
            floats = tf.train.Feature(float_list=tf.train.FloatList(value=window.ravel()))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"window": floats})).SerializeToString())
    return len(windows) / (time.perf_counter() - began)


def by_us(windows: np.ndarray, path: Path, **options) -> float:
    began = time.perf_counter()
    data.write(path, {"window": windows}, shards=SHARDS, processes=1, replace=True, **options)
    return len(windows) / (time.perf_counter() - began)


def waiting(folder: Path, name: str, steps: int) -> tuple[float, float]:
    """The share of training steps that waits for input, and a step's milliseconds: a GRU autoencoder, batch 256."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            tf.keras.Input(SHAPE),
            layers.GRU(128, return_sequences=True),
            layers.GRU(32),
            layers.RepeatVector(SHAPE[0]),
            layers.GRU(32, return_sequences=True),
            layers.GRU(128, return_sequences=True),
            layers.Dense(SHAPE[1]),
        ]
    )
    optimizer = tf.keras.optimizers.Adam()

    @tf.function
    def step(window):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(window, training=True) - window))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    made = data.read(folder / name, batch=256, shuffle=True, check="none", workers=1, index=0)
    iterator = iter(made.dataset())
    for _ in range(5):
        step(next(iterator)["window"]).numpy()
    waited = 0.0
    began = time.perf_counter()
    for _ in range(steps):
        asked = time.perf_counter()
        window = next(iterator)["window"]
        waited += time.perf_counter() - asked
        step(window).numpy()
    spent = time.perf_counter() - began
    return waited / spent, 1000 * spent / steps


def measure(rows: int, rounds: int) -> dict:
    windows = np.random.default_rng(0).normal(size=(rows, *SHAPE)).astype(np.float32)
    others = Others()
    read: dict[str, list[float]] = {name: [] for name in (*READ, "cached")}
    cpu: dict[str, list[float]] = {name: [] for name in READ}
    write: dict[str, list[float]] = {"by_hand": [], "ours": [], "packed": []}
    waits: dict[str, list[float]] = {"plain": [], "packed": []}
    step_ms = []
    with tempfile.TemporaryDirectory(prefix="yurt-bench-") as place:
        folder = Path(place)
        by_us(windows, folder / "plain")
        by_us(windows, folder / "packed", packed=64)
        labels = np.random.default_rng(1).integers(0, 1000, rows)
        for name, column in {"label": labels % 10, "varying": labels}.items():
            data.write(folder / name, {"window": windows, "label": column}, shards=SHARDS, processes=1)
        names = list(READ)
        for number in range(rounds + 1):
            for name in names[number % len(names) :] + names[: number % len(names)]:
                got, used = rate(READ[name][1](folder), rows * (1 if name in RECORD_BY_RECORD else PASSES))
                read[name] += [got] * bool(number)
                cpu[name] += [used] * bool(number)
            if number:
                read["cached"].append(second_epoch(folder))
                write["by_hand"].append(by_hand(windows[: rows // 8], folder / "hand.tfrecord"))
                write["ours"].append(by_us(windows, folder / "again"))
                write["packed"].append(by_us(windows, folder / "again", packed=64))
            print(f"round {number}", file=sys.stderr, flush=True)
        for _ in range(3):
            for name, shares in waits.items():
                share, milliseconds = waiting(folder, name, 30)
                shares.append(share)
                step_ms.append(milliseconds)
    return {
        "rows": rows,
        "rounds": rounds,
        "read": read,
        "cpu_us": cpu,
        "write": write,
        "waits": waits,
        "step_ms": statistics.median(step_ms),
        "cpus": os.cpu_count(),
        "others": others.share(),
        "tensorflow": tf.__version__,
    }


def times(rates: list[float], than: list[float]) -> float:
    """The median over the rounds of how many times faster."""
    return statistics.median(a / b for a, b in zip(rates, than, strict=True))


def page(found: dict) -> str:
    read, write = found["read"], found["write"]
    lines = ["| reading | rows a second | times naive | times only reading | CPU a row |", "|---|---|---|---|---|"]
    labels = {name: label for name, (label, _) in READ.items()}
    labels["cached"] = "`yurt.data.read`, second epoch from `cache=True`"
    for name, label in labels.items():
        got = read[name]
        than = f"{times(got, read['naive']):.1f} | {times(got, read['reading']):.2f}"
        used = found["cpu_us"].get(name)
        spent = f"{statistics.median(used):.1f} µs" if used else ""
        lines.append(f"| {label} | {statistics.median(got):,.0f} | {than} | {spent} |")
    lines += ["", "| writing, one process | rows a second | times by hand |", "|---|---|---|"]
    ways = {
        "by_hand": "`tf.train.Example` with a `float_list`",
        "ours": "`yurt.data.write`",
        "packed": "`yurt.data.write`, 64 rows a record",
    }
    for name, label in ways.items():
        much = times(write[name], write["by_hand"])
        lines.append(f"| {label} | {statistics.median(write[name]):,.0f} | {much:.1f} |")
    plain, packed = (100 * statistics.median(found["waits"][name]) for name in ("plain", "packed"))
    noise = (
        f"**The machine was not quiet: others used {100 * found['others']:.0f} % of it meanwhile.** What runs in "
        "several threads suffers most from that; the processor time a row does not depend on it."
        if found["others"] > QUIET
        else "The machine was quiet."
    )
    lines += [
        "",
        (
            f"A training step of a GRU autoencoder (128, 32 and back, 256 rows, {found['step_ms']:.0f} ms) waits for "
            f"shuffled input {plain:.2f} % of its time, with packed records {packed:.2f} %."
        ),
        "",
        (
            f"{found['rows']:,} rows, {PASSES} passes each but for the first two ways, medians of {found['rounds']} "
            f"rounds, TensorFlow {found['tensorflow']}, {found['cpus']} CPUs. {noise}"
        ),
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=80_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write what was measured to a file")
    parser.add_argument("--markdown", type=Path, help="a page with <!-- data --> and <!-- /data -->")
    arguments = parser.parse_args()
    found = measure(arguments.rows, arguments.rounds)
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1) + "\n")
    table = page(found)
    print(table)
    if arguments.markdown:
        text = arguments.markdown.read_text()
        made = re.sub(
            r"(<!-- data -->\n).*?(<!-- /data -->)",
            lambda match: f"{match[1]}{table}\n{match[2]}",
            text,
            flags=re.DOTALL,
        )
        arguments.markdown.write_text(made)


if __name__ == "__main__":
    main()
