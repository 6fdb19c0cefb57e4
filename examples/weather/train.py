"""Train the autoencoder on the windows that prepare.py wrote: in one process, or as one of many workers.

    python train.py                       # one process
    TF_CONFIG=... python train.py         # one worker of several; each is started with its own TF_CONFIG

Several workers need legacy Keras (TF_USE_LEGACY_KERAS=1), or a Keras 3 that Yurt has mended.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import io
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import tensorflow as tf
from model import build

HERE = Path(__file__).parent
WEATHER = 8  # the first eight values are weather, the other two only say what time of day it is


def read_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE / "data", help="the folder prepare.py wrote")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--batch-per-worker", type=int, default=1024, help="windows per worker and step")
    parser.add_argument("--learning-rate", type=float, default=1e-2, help="at the start; it falls to nothing")
    parser.add_argument("--units", type=int, nargs="+", default=[128, 32], help="widths of the encoder's layers")
    parser.add_argument("--dropout", type=float, default=0.02)
    parser.add_argument("--momentum", type=float, default=0.9, help="of BatchNormalization's averages")
    parser.add_argument("--no-states", action="store_true", help="hand no states over: only the vector is left")
    parser.add_argument("--seed", type=int, default=2013)
    return parser.parse_args()


class Place:
    """Where this process stands among the workers, as TF_CONFIG says; alone where it says nothing."""

    def __init__(self, config: str) -> None:
        parsed = json.loads(config or "{}")
        task = parsed.get("task", {})
        cluster = parsed.get("cluster", {})
        self.type, self.index = task.get("type", "worker"), int(task.get("index", 0))
        self.workers = sum(len(cluster.get(role, ())) for role in ("chief", "worker")) or 1
        self.leads = self.type == "chief" or (self.index == 0 and "chief" not in cluster)


def read_windows(data: Path, part: dict, workers: int, *, by_file: bool) -> tf.data.Dataset:
    """Read serialised windows, each worker its own: its own files, or its share of every batch."""
    options = tf.data.Options()
    policy = tf.data.experimental.AutoShardPolicy
    own_files = by_file and len(part["files"]) >= workers
    options.experimental_distribute.auto_shard_policy = policy.FILE if own_files else policy.DATA
    # There is nothing to tune here. And the thread that tunes is asked to end when its iterator goes, sometimes
    # does not hear it, and then sleeps on while everybody waits: a minute, once epochs have been going for a while.
    options.autotune.enabled = False
    return tf.data.TFRecordDataset([str(data / file["name"]) for file in part["files"]]).with_options(options)


def parse(schema: dict):
    """Make the function that parses a whole batch at once: much faster than window by window."""
    shape = schema["record"]["window"]["shape"]

    def parse_batch(batch: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        window = tf.io.parse_example(batch, {"window": tf.io.FixedLenFeature(shape, tf.float32)})["window"]
        return window, window  # an autoencoder is asked for what it was given

    return parse_batch


def training_data(data: Path, schema: dict, workers: int, batch: int, seed: int) -> tf.data.Dataset:
    """All training windows in a new order each time, without end: `fit` is told how many steps an epoch has."""
    part = schema["splits"]["train"]
    windows = read_windows(data, part, workers, by_file=True).shuffle(part["windows"], seed=seed).repeat()
    return windows.batch(batch, drop_remainder=True).map(parse(schema)).prefetch(2)


def measuring_data(data: Path, schema: dict, split: str, workers: int, batch: int) -> tf.data.Dataset:
    """Each window of a part once; of the last ones as many as give every worker the same number."""
    part = schema["splits"][split]
    windows = read_windows(data, part, workers, by_file=False).take(part["windows"] // workers * workers)
    return windows.batch(batch).map(parse(schema)).prefetch(2)


def weather_error(truth: tf.Tensor, guess: tf.Tensor) -> tf.Tensor:
    """The mean squared error of the weather alone, without the hour's sine and cosine."""
    return tf.reduce_mean(tf.square(truth[..., :WEATHER] - guess[..., :WEATHER]), axis=-1)


def keras_version() -> str:
    """Which of the two Kerases `tf.keras` is, and its version."""
    name = tf.keras.Model.__module__.partition(".")[0]
    return f"{name} {importlib.metadata.version(name)}"


def mean(values: list[float]) -> float:
    return sum(values) / len(values)


def main() -> None:
    arguments = read_arguments()
    try:
        schema = json.loads((arguments.data / "schema.json").read_text())
    except FileNotFoundError:
        sys.exit(f"train: there is no data in {arguments.data}; make it with: python prepare.py")
    place = Place(os.environ.get("TF_CONFIG", ""))

    # The strategy comes before anything else that touches TensorFlow's runtime.
    several = place.workers > 1
    strategy = tf.distribute.MultiWorkerMirroredStrategy() if several else tf.distribute.get_strategy()
    tf.keras.utils.set_random_seed(arguments.seed)

    workers = place.workers
    batch = arguments.batch_per_worker * workers
    steps = max(1, schema["splits"]["train"]["windows"] // batch)
    print(
        f"train: {workers} worker(s), {batch:,} windows a step, {steps} steps an epoch, "
        f"{keras_version()}, TensorFlow {tf.__version__}",
        flush=True,
    )
    train = training_data(arguments.data, schema, workers, batch, arguments.seed)
    validation = measuring_data(arguments.data, schema, "validation", workers, batch)
    test = measuring_data(arguments.data, schema, "test", workers, batch)

    with strategy.scope():
        model = build(
            *schema["record"]["window"]["shape"],
            units=tuple(arguments.units),
            dropout=arguments.dropout,
            momentum=arguments.momentum,
            hand_over_states=not arguments.no_states,
        )
        rate = tf.keras.optimizers.schedules.CosineDecay(arguments.learning_rate, steps * arguments.epochs)
        model.compile(tf.keras.optimizers.Adam(rate), loss="mse", metrics=[weather_error])

    callbacks = []
    if folder := os.environ.get("YURT_CHECKPOINT_DIR"):  # one folder for all workers
        callbacks.append(tf.keras.callbacks.BackupAndRestore(folder))
    began = time.monotonic()
    history = model.fit(
        train,
        epochs=arguments.epochs,
        steps_per_epoch=steps,
        validation_data=validation,
        callbacks=callbacks,
        verbose=2,
    ).history
    seconds = time.monotonic() - began

    # Every worker measures: each has a share of the windows, and they add up what they find.
    measured = {
        "validation": model.evaluate(validation, verbose=2, return_dict=True),
        "test": model.evaluate(test, verbose=2, return_dict=True),
    }
    metrics = {"windows": {name: part["windows"] for name, part in schema["splits"].items()}}
    for name, result in measured.items():
        part, short = schema["splits"][name], {"validation": "val"}.get(name, name)
        error, weather = result["loss"], result["weather_error"]
        mean_error = mean(part["error_of_training_mean"])
        weather_mean_error = mean(part["error_of_training_mean"][:WEATHER])
        metrics |= {
            f"{short}_loss": error,
            f"{short}_baseline_loss": mean_error,
            f"{short}_explained": 1 - error / mean_error,
            f"{short}_weather_loss": weather,
            f"{short}_weather_baseline_loss": weather_mean_error,
            f"{short}_weather_window_mean_loss": mean(part["error_of_window_mean"][:WEATHER]),
            f"{short}_weather_explained": 1 - weather / weather_mean_error,
        }
    metrics |= {
        "baseline_loss": metrics["test_baseline_loss"],
        "workers": workers,
        "batch": batch,
        "epochs": arguments.epochs,
        "steps_per_epoch": steps,
        "fit_s": round(seconds, 1),
        "keras": keras_version(),
        "tensorflow": tf.__version__,
        "parameters": model.count_params(),
        "history": {name: [float(value) for value in values] for name, values in history.items()},
    }
    save(model, metrics, arguments.data / "schema.json", place)
    print(
        f"test: loss {metrics['test_loss']:.4f}, the mean alone {metrics['test_baseline_loss']:.2f}, "
        f"explained {100 * metrics['test_explained']:.1f} % "
        f"(of the weather without the time of day {100 * metrics['test_weather_explained']:.1f} %)",
        flush=True,
    )


def save(model: tf.keras.Model, metrics: dict, schema: Path, place: Place) -> None:
    """Save the model with all that is needed to use it.

    Every worker saves, because reading a model that is spread over workers takes all of them; each into its own
    folder. Started without Yurt, the folder is `model`, and what workers other than the leader save is thrown away.
    """
    named = os.environ.get("YURT_MODEL_DIR")
    scratch = None if named or place.leads else tempfile.mkdtemp(prefix="weather-")
    folder = Path(scratch or named or "model")
    folder.mkdir(parents=True, exist_ok=True)
    model.save(folder / "weather.keras")  # to train on, with the Keras that wrote it
    with contextlib.redirect_stdout(io.StringIO()):  # it prints hundreds of lines about its captures
        model.export(str(folder / "saved_model"))  # to use, with any
    shutil.copyfile(schema, folder / "schema.json")
    (folder / "metrics.json").write_text(json.dumps(metrics, indent=1) + "\n")
    if scratch:
        shutil.rmtree(scratch)


if __name__ == "__main__":
    main()
