"""How a pipeline is to go: plain values, so that asking for one imports no TensorFlow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from yurt.data.schema import Schema


@dataclass(frozen=True)
class Order:
    """`shuffle` is how many rows may change places (0: none do); the seed is the same for all workers.

    `epochs` None is without end.
    """

    shuffle: int = 0
    seed: int = 0
    cache: bool = False
    epochs: int | None = None
    initial_epoch: int = 0
    initial_step: int = 0


@dataclass(frozen=True)
class Content:
    """What a batch becomes: which features, filled up or not, and a function of the whole batch."""

    schema: Schema
    pad: Mapping[str, Any] | bool = False
    transform: Callable[[Any], Any] | None = None
