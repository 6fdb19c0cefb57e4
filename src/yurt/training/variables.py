"""The variables that make a model and its optimizer go on exactly, by name: of Keras 3 and of tf_keras.

A name is ``model/0003/dense/kernel``: the group, the place in it, and the variable's own path. Place and path must
both fit where values are put back, but for the numbers that Keras gives to names (``dense_1``), which depend on what
else was made before. Keras 3's seed generators are among a model's variables, so that Dropout goes on with its random
stream; of tf_keras's random layers only those with a `tf.random.Generator` (``rng_type="stateful"``) have any state.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import nullcontext
from typing import Any

import numpy as np

from yurt.training import kept
from yurt.training.errors import TrainingError

_NUMBER = re.compile(r"_\d+(?=[_/]|$)")


def named(group: str, variables: Iterable[Any]) -> dict[str, Any]:
    """Variables by name, each once, in the order in which they come."""
    distinct = {id(plain(variable)): variable for variable in variables}
    return {f"{group}/{place:04}/{_path(variable)}": variable for place, variable in enumerate(distinct.values())}


def model_variables(model: Any, *, optimizer: bool = True, group: str = "model") -> dict[str, Any]:
    """Weights, averages and random states of a model, and with `optimizer` all of its optimizer, under ``optimizer/``.

    The optimizer's own variables are made here if they are not yet. Raises TrainingError for a model that is not built.
    """
    if not is_built(model):
        raise TrainingError(
            f"model {model.name!r} has no variables yet, so nothing could be put back into it",
            hint="build it first: call it on one batch, or model.build((None, ...)), inside the strategy's scope",
        )
    found = named(group, [*getattr(model, "variables", ()), *_random_states(model)])
    own = getattr(model, "optimizer", None)
    if optimizer and own is not None:
        found.update(optimizer_variables(own, model.trainable_variables, strategy=model.distribute_strategy))
    return found


def is_built(model: Any) -> bool:
    """Whether a model's variables exist."""
    if not getattr(model, "built", False):
        return False
    try:
        return model.variables is not None
    except ValueError:  # a tf_keras model with a layer that has not seen data
        return False


def optimizer_variables(
    optimizer: Any, trainable: Iterable[Any] | None, *, group: str = "optimizer", strategy: Any = None
) -> dict[str, Any]:
    """All variables of an optimizer: counts, moments, the learning rate. They are made if they are not yet."""
    if trainable is not None:
        with strategy.scope() if strategy is not None else nullcontext():
            _build(optimizer, list(trainable))
    inner = getattr(optimizer, "inner_optimizer", None)  # a LossScaleOptimizer has one
    found: list[Any] = []
    for each in (optimizer, inner):
        found += [] if each is None else [*_all(each), *_hyper_parameters(each)]
    return named(group, found)


def metric_variables(metrics: Iterable[Any], *, group: str = "metrics") -> dict[str, Any]:
    """The sums of metrics, as far as they exist."""
    return named(group, [variable for metric in metrics for variable in metric.variables])


def check(variables: Mapping[str, Any], stored: Mapping[str, np.ndarray[Any, Any]], dtypes: Mapping[str, str]) -> None:
    """Raise TrainingError, naming the first variable, where values do not fit; only the groups of `variables` count."""
    groups = list(dict.fromkeys(name.partition("/")[0] for name in variables))
    theirs = [name for name in stored if name.partition("/")[0] in groups]
    for group in groups:
        mine = [name for name in variables if name.partition("/")[0] == group]
        other = [name for name in theirs if name.partition("/")[0] == group]
        for place in range(max(len(mine), len(other))):
            here = mine[place] if place < len(mine) else None
            there = other[place] if place < len(other) else None
            if there is None:
                raise TrainingError(f"variable {_shown(str(here))} is not in the checkpoint")
            if here is None:
                raise TrainingError(f"variable {_shown(there)} of the checkpoint is not in what is trained here")
            was = dtypes.get(there, stored[there].dtype.name)
            now = _dtype(variables[here])
            its_shape, my_shape = tuple(stored[there].shape), tuple(variables[here].shape)
            if _numberless(here) != _numberless(there) or its_shape != my_shape or was != now:
                raise TrainingError(
                    f"variable {_shown(there)} of the checkpoint is {was} {its_shape}, "
                    f"and here in its place {_shown(here)} is {now} {my_shape}"
                )


def restore(
    variables: Mapping[str, Any], stored: Mapping[str, np.ndarray[Any, Any]], dtypes: Mapping[str, str] | None = None
) -> None:
    """Put values of a checkpoint (`kept.read`) into variables; `dtypes` are its metadata's. Raises TrainingError."""
    dtypes = dtypes or {}
    check(variables, stored, dtypes)
    places = {place_of(name): name for name in stored}
    for name, variable in variables.items():
        there = places[place_of(name)]
        variable.assign(kept.real(stored[there], dtypes.get(there)))


def place_of(name: str) -> str:
    """``model/0003`` of ``model/0003/dense/kernel``."""
    return "/".join(name.split("/", 2)[:2])


def plain(variable: Any) -> Any:
    """TensorFlow's variable inside of Keras 3's."""
    # Looking into a variable of TensorFlow's can be a collective: `_value` of a SyncOnReadVariable is one.
    of_keras = any(kind.__module__.startswith("keras.src.") for kind in type(variable).__mro__)
    inner = variable._value if of_keras else None  # noqa: SLF001 - `value` casts it
    return variable if inner is None else inner


def _path(variable: Any) -> str:
    path = getattr(variable, "path", None) or variable.name
    return str(path).removesuffix(":0")


def _shown(name: str) -> str:
    """A name for people: without group and place, unless it is the optimizer's."""
    group, _, path = name.split("/", 2)
    return path if group == "model" else f"{path} ({group})"


def _numberless(name: str) -> str:
    group, _, path = name.split("/", 2)
    # tf_keras's optimizers call theirs otherwise when `fit` makes them than when they are built before.
    return "" if group == "optimizer" else _NUMBER.sub("", path)


def _dtype(variable: Any) -> str:
    dtype = variable.dtype
    return dtype if isinstance(dtype, str) else str(dtype.name)


def _all(optimizer: Any) -> list[Any]:
    found = optimizer.variables
    return list(found() if callable(found) and not isinstance(found, (list, tuple)) else found)


def _build(optimizer: Any, trainable: list[Any]) -> None:
    legacy = getattr(optimizer, "_create_all_weights", None)  # tf_keras.optimizers.legacy
    if legacy is not None:
        legacy(trainable)
    elif not (getattr(optimizer, "built", None) or getattr(optimizer, "_built", False)):
        optimizer.build(trainable)


def _hyper_parameters(optimizer: Any) -> list[Any]:
    """tf_keras: what is not among an optimizer's variables, the learning rate first."""
    candidates = [getattr(optimizer, "_learning_rate", None), *getattr(optimizer, "_hyper", {}).values()]
    return [each for each in candidates if hasattr(each, "assign")]


def _random_states(model: Any) -> Iterable[Any]:
    """tf_keras: states of the generators of random layers, which are none of the model's weights."""
    layers = getattr(model, "_flatten_layers", tuple)
    for layer in layers():
        generator = getattr(getattr(layer, "_random_generator", None), "_generator", None)
        if generator is not None:
            yield generator.state
