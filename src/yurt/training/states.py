"""The state of callbacks: those of Keras that have one, and any with ``get_state()`` and ``set_state(state)``.

A state may be made of dicts with text keys, lists, numbers, texts, booleans, None and arrays; tuples come back as
lists. In a checkpoint it is JSON, and its arrays lie beside the variables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from yurt.training.errors import TrainingError

#: What Keras 3.15 and tf_keras 2.21 callbacks keep from epoch to epoch.
_ATTRIBUTES: Final = {
    "EarlyStopping": ("wait", "best", "best_epoch", "stopped_epoch", "best_weights"),
    "ReduceLROnPlateau": ("wait", "best", "cooldown_counter"),
    "ModelCheckpoint": (
        "best",
        "epochs_since_last_save",
        "_batches_seen_since_last_saving",
        "_last_batch_seen",
        "_current_epoch",
    ),
}
_ARRAY: Final = "__array__"

Arrays = dict[str, np.ndarray[Any, Any]]


def gather(callbacks: Iterable[Any]) -> tuple[dict[str, Any], Arrays]:
    """The states of callbacks by ``EarlyStopping/0``, and the arrays in them. Raises TrainingError, naming one."""
    states, arrays = {}, Arrays()
    for name, callback in _named(callbacks):
        state = _state(callback)
        if state is not None:
            states[name] = pack(state, f"callbacks/{name}", arrays)
    return states, arrays


def spread(callbacks: Iterable[Any], states: Mapping[str, Any], arrays: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Give callbacks their states back; one that had none keeps what it has."""
    for name, callback in _named(callbacks):
        if name not in states:
            continue
        state = unpack(states[name], arrays)
        if callable(getattr(callback, "set_state", None)):
            callback.set_state(state)
            continue
        for attribute, value in state.items():
            setattr(callback, attribute, value)


def pack(value: Any, name: str, arrays: Arrays) -> Any:
    """A state as JSON; its arrays go into `arrays` under `name` and more. Raises TrainingError, naming it."""
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TrainingError(f"the state {name} has a dict with keys that are no texts")
        return {key: pack(each, f"{name}/{key}", arrays) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [pack(each, f"{name}/{place}", arrays) for place, each in enumerate(value)]
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic) and value.dtype.kind in "biuf":
        return value.item()
    array = np.array(value)
    if array.dtype.hasobject:
        raise TrainingError(f"the state {name} is a {type(value).__name__}, which a checkpoint cannot keep")
    arrays[name] = array
    return {_ARRAY: name}


def unpack(value: Any, arrays: Mapping[str, np.ndarray[Any, Any]]) -> Any:
    """The reverse of `pack`."""
    if isinstance(value, dict):
        if value.keys() == {_ARRAY}:
            return arrays[value[_ARRAY]]
        return {key: unpack(each, arrays) for key, each in value.items()}
    return [unpack(each, arrays) for each in value] if isinstance(value, list) else value


def _named(callbacks: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    counts: dict[str, int] = {}
    for callback in callbacks:
        kind = type(callback).__name__
        counts[kind] = counts.get(kind, -1) + 1
        yield f"{kind}/{counts[kind]}", callback


def _state(callback: Any) -> Any:
    if callable(getattr(callback, "get_state", None)) and callable(getattr(callback, "set_state", None)):
        return callback.get_state()
    for kind in type(callback).__mro__:
        if kind.__name__ in _ATTRIBUTES and "keras" in kind.__module__:
            names = _ATTRIBUTES[kind.__name__]
            return {name: getattr(callback, name) for name in names if hasattr(callback, name)}
    return None
