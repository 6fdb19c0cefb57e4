"""How far `fit` is, for whoever watches the run: a callback in every `fit`, of Keras 3 and of tf_keras.

It writes the file that YURT_PROGRESS_FILE names, whole and by rename, at most twice a second (and once more where the
first epoch ends and where training ends)::

    {"epoch": 3, "epochs": 20, "step": 17, "steps": 25, "loss": 0.034, "metrics": {"val_loss": 0.04},
     "examples_per_s": 51234.0, "input_wait": 0.12}

Examples a second are those of this task: the batch size, divided by the workers where they share a batch, over the time
that the last seconds of steps took, validation not counted. `input_wait` is the share of that time that this task
waited for its input (`_yurt_waiting`). A step costs a look at the clock; values are fetched from the device only when
they are written.
"""

import collections
import json
import os
import time

import _yurt_waiting
from _yurt_task import multi_worker, parameter_server, say, workers

EVERY_S = 0.5
WINDOW_S = 5.0

_last_batch_size = None


def mend_iterator(trainer):
    """Note the batch size of what Keras 3's `fit` iterates over."""
    cls = trainer.TFEpochIterator
    init = cls.__init__

    def mended_init(self, *args, **kwargs):
        init(self, *args, **kwargs)
        note_batch_size(self.data_adapter)

    cls.__init__ = mended_init


def mend_handler(module):
    """Note the batch size of what tf_keras's `fit` iterates over."""
    cls = module.DataHandler
    init = cls.__init__

    def mended_init(self, *args, **kwargs):
        init(self, *args, **kwargs)
        note_batch_size(self._adapter)

    cls.__init__ = mended_init


def note_batch_size(adapter):
    """Remember the global batch size, or that it is not known."""
    global _last_batch_size
    try:
        size = getattr(adapter, "batch_size", None)
        size = size() if callable(size) else size
        _last_batch_size = int(size) if size else batch_size_of(getattr(adapter, "_dataset", None))
    except Exception:
        _last_batch_size = None


def batch_size_of(dataset):
    """The size of a dataset's batches, from the place in its pipeline that makes them; None where that is not plain."""
    import tensorflow as tf

    for _ in range(50):
        if dataset is None:
            return None
        for component in tf.nest.flatten(dataset.element_spec)[:1]:
            shape = getattr(component, "shape", None)
            if shape is not None and shape.rank and shape[0] is not None:
                return int(shape[0])
        kind = type(dataset).__name__
        if any(word in kind for word in ("Unbatch", "FlatMap", "Interleave", "Window", "Group")):
            return None
        if getattr(dataset, "_batch_size", None) is not None:
            return int(tf.get_static_value(dataset._batch_size))
        dataset = getattr(dataset, "_input_dataset", None)
    return None


def share_of_batch(model):
    """How many examples of a batch this task has; None where that is not known."""
    if _last_batch_size is None or not multi_worker(getattr(model, "distribute_strategy", None)):
        return _last_batch_size
    return _last_batch_size / workers()


def progress_callback(base):
    """The callback's class, on the `Callback` of one of the two Kerases."""

    class YurtProgress(base):
        """Writes the progress file; see this file's head."""

        async_safe = True

        def __init__(self, path, batch_size):
            super().__init__()
            # tf_keras: hand tensors over as they are, and do not wait for them at every step; without this it refuses
            # a callback that looks at batches under ParameterServerStrategy.
            self._supports_tf_logs = True
            self._path, self._batch_size = path, batch_size
            self._progress = {}
            self._written_at = float("-inf")
            self._trained_s, self._examples = 0.0, 0.0  # of the steps so far
            self._meter, self._replicas = None, 1  # of the time that goes into waiting for input
            # (trained_s, examples, waited_s), at most WINDOW_S apart from first to last
            self._marks = collections.deque()
            self._step_at = None
            self._first_step = True  # it traces and compiles: no measure of anything
            self._reads_batches = True
            self._ended = {}  # results of an epoch that ended too soon after the last writing

        def on_train_begin(self, logs=None):
            self._reads_batches = not parameter_server(getattr(self.model, "distribute_strategy", None))
            self._progress["epochs"] = self.params.get("epochs")
            if measured := _yurt_waiting.measure(self.model):
                self._meter, self._replicas = measured

        def on_epoch_begin(self, epoch, logs=None):
            self._progress["epoch"] = epoch + 1
            self._progress["steps"] = self.params.get("steps")
            self._progress.pop("step", None)
            self._done = 0
            self._step_at = time.monotonic()

        def on_train_batch_end(self, batch, logs=None):
            now = time.monotonic()
            if self._first_step:
                self._first_step = False
            else:
                self._trained_s += now - self._step_at
                self._examples += (self._batch_size or 0) * (batch + 1 - self._done)
            self._done, self._step_at = batch + 1, now
            if now - self._written_at >= EVERY_S:
                self._progress["step"] = self._done
                self._write(now, logs if self._reads_batches else None)

        def on_epoch_end(self, epoch, logs=None):
            self._progress["step"] = self._done
            if self._progress.get("steps") is None:
                self._progress["steps"] = self._done or None
            now = time.monotonic()
            if epoch == 0 or now - self._written_at >= EVERY_S:
                self._write(now, logs)
            else:
                self._ended = logs or {}

        def on_train_end(self, logs=None):
            self._write(time.monotonic(), logs)
            _yurt_waiting.end(self.model)

        def _write(self, now, logs):
            self._written_at = now
            try:
                values = {name: number(value) for name, value in {**self._ended, **(logs or {})}.items()}
                self._ended = {}
                if "loss" in values:
                    self._progress["loss"] = values.pop("loss")
                values = {name: value for name, value in values.items() if value is not None}
                if values:
                    self._progress["metrics"] = {**self._progress.get("metrics", {}), **values}
                self._progress.update(self._rates())
                known = {name: value for name, value in self._progress.items() if value is not None}
                part = f"{self._path}.{os.getpid()}.part"
                with open(part, "w", encoding="utf-8") as file:
                    json.dump(known, file)
                os.replace(part, self._path)
            except Exception as error:  # whatever it is, training goes on
                say(f"no progress is told: {error!r}", everyone=True)
                self._written_at = float("inf")

        def _rates(self):
            """What the last seconds of steps tell."""
            marks = self._marks
            marks.append((self._trained_s, self._examples, self._meter.seconds() if self._meter else 0.0))
            while len(marks) > 2 and marks[1][0] < self._trained_s - WINDOW_S:
                marks.popleft()
            seconds, examples, waited_s = (last - first for first, last in zip(marks[0], marks[-1]))
            told = {}
            if seconds > 0 and examples > 0:
                told["examples_per_s"] = round(examples / seconds, 1)
            if seconds > 0 and self._meter:
                told["input_wait"] = round(min(max(waited_s / self._replicas / seconds, 0.0), 1.0), 3)
            return told

    return YurtProgress


def number(value):
    """A float, or None for what is no single finite number (JSON has no NaN)."""
    try:
        value = float(value)
    except (TypeError, ValueError):
        return None
    return value if value - value == 0 else None
