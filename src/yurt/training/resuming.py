"""Training data from the place where training goes on. Imports TensorFlow."""

from __future__ import annotations

from typing import Any

from yurt.training.begun import Begun
from yurt.training.errors import TrainingError

#: The key of a checkpoint's metadata that says how many steps the data had in an epoch.
DATA_STEPS = "data_steps"


def is_data(x: Any) -> bool:
    """Whether this is a `yurt.data.Data`; that package has needs of its own, so it is not imported here."""
    return callable(getattr(x, "again", None)) and callable(getattr(x, "for_fit", None))


def placed(data: Any, begun: Begun, pipelines: int) -> Any:
    """A `yurt.data.Data` that goes on where training does."""
    if begun.metadata.get(DATA_STEPS, data.steps) == data.steps:
        epoch, step = _place(data.steps, begun, pipelines)
    else:  # another batch size, or other data
        epoch, step = begun.epoch, min(begun.step, data.steps - 1)
    return data.again(epoch=epoch, step=step)


def from_here(x: Any, begun: Begun, pipelines: int) -> Any:
    """A tf.data.Dataset for `fit`, without end, that begins where training goes on.

    `x` is a `yurt.data.Data`; or a dataset that is one epoch, the same each time, or repeats without end; or a function
    of an epoch's number (an int64 tensor) that gives the dataset of that epoch. `pipelines` is how many such datasets
    the steps are taken from: one, or one a worker under parameter servers. Raises TrainingError for anything else.
    """
    import tensorflow as tf

    if is_data(x):
        return placed(x, begun, pipelines).for_fit()
    if isinstance(x, tf.data.Dataset):
        length = int(x.cardinality())
        if length == tf.data.INFINITE_CARDINALITY:
            return x.skip(begun.steps_done // pipelines)
        _, step = _place(length, begun, pipelines)
        return x.skip(step).concatenate(x.repeat()) if step else x.repeat()
    if callable(x):
        epoch, step = _place(int(x(tf.constant(0, tf.int64)).cardinality()), begun, pipelines)
        epochs = tf.data.Dataset.range(epoch, 2**62).flat_map(x)
        return epochs.skip(step) if step else epochs
    raise TrainingError(
        f"a {type(x).__name__} cannot be resumed within an epoch",
        hint="yurt.data.read(...), a tf.data.Dataset that is one epoch, or a function of the epoch that gives one; "
        "arrays: tf.data.Dataset.from_tensor_slices((x, y)).batch(...)",
    )


def _place(length: int, begun: Begun, pipelines: int) -> tuple[int, int]:
    """Epoch and step in data of `length` steps an epoch, which `steps_per_epoch` may differ from; -1 if not known."""
    if length > 0:
        return divmod(begun.steps_done // pipelines, length)
    return (begun.epoch, begun.step) if pipelines == 1 else (begun.epoch // pipelines, 0)
