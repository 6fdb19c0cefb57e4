"""What variables hold, read and put back in every member of a gang. Imports TensorFlow.

Under MultiWorkerMirroredStrategy a variable may be (TensorFlow 2.21, Keras 3.15, tf_keras 2.21):

- the same on all members: weights, optimizers, random states. The leader's is read.
- each member's own part of a sum or a mean, put together by TensorFlow when it is read (``ON_READ``): metrics made
  inside the scope, BatchNormalization of tf_keras. All members read.
- each member's own with nobody to put it together: BatchNormalization's averages of Keras 3, metrics made outside the
  scope. A moving average is linear, so the mean over the members is what goes on exactly; sums are added up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from yurt.training import kept
from yurt.training.gang import Gang
from yurt.training.variables import check, metric_variables, place_of, plain


def read(
    variables: Mapping[str, Any], gang: Gang, *, means: Iterable[Any] = (), sums: Iterable[Any] = ()
) -> dict[str, np.ndarray[Any, Any]]:
    """Copies of what variables hold, by name. All members call it; the leader alone needs to use what it gives.

    `means` and `sums` are those that are each member's own.
    """
    if not gang.several:
        return {name: _value(variable) for name, variable in variables.items()}
    averaged, added = {id(plain(each)) for each in means}, {id(plain(each)) for each in sums}
    found = {}
    for name, variable in variables.items():
        how = "MEAN" if id(plain(variable)) in averaged else "SUM" if id(plain(variable)) in added else None
        if how:
            found[name] = _reduced(gang.strategy, how, variable)
        elif gang.leads or _put_together_when_read(variable):
            found[name] = _value(variable)
    return found


def restore(
    variables: Mapping[str, Any],
    stored: Mapping[str, np.ndarray[Any, Any]],
    dtypes: Mapping[str, str],
    gang: Gang,
    *,
    sums: Iterable[Any] = (),
) -> None:
    """Put values back on every member, which all have the same `stored`. Raises TrainingError, having changed none."""
    check(variables, stored, dtypes)
    added = {id(plain(each)) for each in sums}
    places = {place_of(name): name for name in stored}
    for name, variable in variables.items():
        there = places[place_of(name)]
        value = kept.real(stored[there], dtypes.get(there))
        if id(plain(variable)) in added and not gang.leads:
            value = np.zeros_like(value)
        variable.assign(value)


def averages(model: Any) -> list[Any]:
    """Keras 3's moving averages, which are each member's own until an epoch ends."""
    return _of_the_hook("averages", model)


def average(gang: Gang, models: Iterable[Any]) -> None:
    """Make the moving averages equal on all members, as `fit` does at an epoch's end."""
    if gang.several:
        add_up: Callable[..., None] = sys.modules["_yurt_finders"].own("_yurt_multi_worker").add_up
        add_up(gang.strategy, "MEAN", [variable for model in models for variable in averages(model)])


def own_sums(model: Any) -> list[Any]:
    """Keras 3's metrics made outside the scope, whose sums are each member's own."""
    return _of_the_hook("outside_the_scope", model)


def read_metrics(model: Any, gang: Gang) -> dict[str, np.ndarray[Any, Any]]:
    """The sums of a model's metrics in the middle of an epoch, over all members."""
    return read(metric_variables(model.metrics), gang, sums=own_sums(model) if gang.several else ())


def _of_the_hook(function: str, model: Any) -> list[Any]:
    if not any(kind.__module__.startswith("keras.src.") for kind in type(model).__mro__):
        return []  # TensorFlow puts the parts of tf_keras's variables together
    part = sys.modules["_yurt_finders"].own("_yurt_multi_worker")
    return list(getattr(part, function)(model))


def _value(variable: Any) -> np.ndarray[Any, Any]:
    import tensorflow as tf

    return np.array(tf.convert_to_tensor(plain(variable)))  # a copy: training goes on while it is written


def _reduced(strategy: Any, how: str, variable: Any) -> np.ndarray[Any, Any]:
    import tensorflow as tf

    own = plain(variable)
    copies = getattr(own, "values", (own,))
    value = tf.convert_to_tensor(own)
    if len(copies) > 1:  # several devices, each with its own copy: `reduce` wants values of the replicas
        value = strategy.run(lambda: tf.convert_to_tensor(own))
    result: np.ndarray[Any, Any] = strategy.reduce(how, value, axis=None).numpy()
    return result


def _put_together_when_read(variable: Any) -> bool:
    import tensorflow as tf

    synchronization = getattr(plain(variable), "synchronization", None)
    return bool(synchronization == tf.VariableSynchronization.ON_READ)
