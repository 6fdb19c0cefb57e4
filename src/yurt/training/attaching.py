"""How a `Checkpoint` gets into `fit`, of Keras 3 (3.10 to 3.15) and of tf_keras (2.21).

Both make a CallbackList of the callbacks that `fit` was given. A Checkpoint is taken out of it and called by the list
itself, after all the others: it keeps what they decided, and it is asked at every step without Keras fetching the
step's values for it (which Keras 3 does for every callback that it cannot call in a thread of its own).

Neither Keras can begin within an epoch by itself: Keras 3's epoch iterator is told here to leave out the first steps,
without taking data for them. tf_keras asks `model._training_state`, see `Checkpoint`.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator
from types import ModuleType, SimpleNamespace
from typing import Any, Final

from yurt.training.errors import TrainingError

_LISTS: Final = ("keras.src.callbacks.callback_list", "tf_keras.src.callbacks")
_TRAINER: Final = "keras.src.backend.tensorflow.trainer"
#: What a Checkpoint is told, and whether with a number, of the epoch or of the batch.
_EVENTS: Final = {
    "on_train_begin": False,
    "on_epoch_begin": True,
    "on_train_batch_end": True,
    "on_epoch_end": True,
    "on_train_end": False,
}
_MARK: Final = "_yurt_attached"

_first_step = 0


def attach(kind: type[Any]) -> None:
    """Make the CallbackLists of this process know callbacks of this class."""
    if not any(name in sys.modules for name in _LISTS):
        import tensorflow as tf

        _ = tf.keras.callbacks.CallbackList  # whichever Keras that is
    for name in _LISTS:
        module = sys.modules.get(name)
        if module is not None and not hasattr(module.CallbackList, _MARK):
            _attach_list(module, kind)
    trainer = sys.modules.get(_TRAINER)
    if trainer is not None and not hasattr(trainer.TFEpochIterator, _MARK):
        _attach_iterator(trainer)


def begin_epoch_at(step: int) -> None:
    """Let Keras 3's next epoch begin with this step, from 0. To be called in the epoch's beginning."""
    global _first_step  # noqa: PLW0603 - Keras makes the iterator, and nobody else sees it
    _first_step = step


def build(model: Any, of_a_batch: Any) -> None:
    """Build a model of Keras 3 by what a batch is like, as Keras does itself under a strategy."""
    import tensorflow as tf

    shapes = tf.nest.map_structure(
        lambda spec: SimpleNamespace(shape=tuple(spec.shape), dtype=spec.dtype.name), of_a_batch
    )
    model._symbolic_build(data_batch=shapes)  # noqa: SLF001


def _attach_list(module: ModuleType, kind: type[Any]) -> None:
    cls = module.CallbackList
    init, marker = cls.__init__, _marker(module.Callback)

    @functools.wraps(init)
    def attached_init(
        self: Any,
        callbacks: Any = None,
        add_history: bool = False,
        add_progbar: bool = False,
        model: Any = None,
        **params: Any,
    ) -> None:
        given = list(_flat(callbacks))
        mine = [each for each in given if isinstance(each, kind)]
        if not mine:
            init(self, callbacks, add_history, add_progbar, model, **params)
            return
        if len(mine) > 1:
            raise TrainingError("fit was given more than one Checkpoint", hint="one keeps everything")
        others = [marker if each is mine[0] else each for each in given]
        init(self, others, add_history, add_progbar, model, **params)
        if add_history and model is not None:  # `fit`; evaluate and predict want no history
            mine[0].join(self, model, params)
            for event, numbered in _EVENTS.items():
                setattr(self, event, _then(getattr(self, event), getattr(mine[0], event), numbered=numbered))

    cls.__init__ = attached_init
    setattr(cls, _MARK, True)


def _marker(base: Any) -> Any:
    """A callback that does nothing, in the place of a Checkpoint: the hook looks for who answers SIGTERM."""
    attributes = {"yurt_handles_sigterm": True, "async_safe": True, "_supports_tf_logs": True}
    return type("YurtCheckpoint", (base,), attributes)()


def _flat(callbacks: Any) -> Iterator[Any]:
    if isinstance(callbacks, (list, tuple)):
        for each in callbacks:
            yield from _flat(each)
    elif callbacks is not None:
        yield callbacks


def _then(first: Callable[..., Any], second: Callable[..., Any], *, numbered: bool) -> Callable[..., Any]:
    def both(*args: Any, **kwargs: Any) -> None:
        first(*args, **kwargs)
        second(*args[: int(numbered)])

    return both


def _attach_iterator(trainer: ModuleType) -> None:
    cls = trainer.TFEpochIterator
    enumerate_epoch = cls._enumerate_iterator

    def attached(self: Any) -> Any:
        global _first_step
        first, _first_step = _first_step, 0
        steps = enumerate_epoch(self)
        return (each for each in steps if each[0] >= first) if first else steps

    cls._enumerate_iterator = attached
    setattr(cls, _MARK, True)
