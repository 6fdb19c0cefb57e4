"""What a training script imports: strategy, checkpoints, a loop of one's own, saving, an evaluator.

::

    from yurt import data, training

    strategy = training.strategy()  # the right one for this task
    train = data.read("data/train", batch=256, shuffle=True)
    with strategy.scope():
        model = build()
        model.compile("adam", "mse")
    checkpoint = training.Checkpoint(every_steps=100)
    model.fit(checkpoint.resume(train), steps_per_epoch=train.steps, epochs=20, callbacks=[checkpoint])
    training.save(model, "weather.keras")

The import alone makes Keras 3's `fit` right under several workers and under parameter servers, as docs/keras.md tells,
whoever starts the processes and whether Keras was imported before. Nothing heavy is imported with this package: each
name is loaded when it is first used, TensorFlow when it is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from yurt.training.mending import mend_keras

if TYPE_CHECKING:
    from yurt.training.checkpoint import Checkpoint
    from yurt.training.errors import TrainingError
    from yurt.training.evaluator import Evaluator
    from yurt.training.folders import checkpoint_dir, model_dir
    from yurt.training.loop import Loop
    from yurt.training.saving import save
    from yurt.training.strategies import coordinator, strategy
    from yurt.training.tracking import trackers

__all__ = [
    "Checkpoint",
    "Evaluator",
    "Loop",
    "TrainingError",
    "checkpoint_dir",
    "coordinator",
    "model_dir",
    "save",
    "strategy",
    "trackers",
]

_HOMES = {
    "Checkpoint": "checkpoint",
    "Evaluator": "evaluator",
    "Loop": "loop",
    "TrainingError": "errors",
    "checkpoint_dir": "folders",
    "coordinator": "strategies",
    "model_dir": "folders",
    "save": "saving",
    "strategy": "strategies",
    "trackers": "tracking",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'yurt.training' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"yurt.training.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__


mend_keras()
