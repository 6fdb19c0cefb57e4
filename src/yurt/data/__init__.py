"""TFRecord data: written, checked, looked at and read, for one worker or many.

::

    from yurt import data

    data.write("data/train", {"window": windows, "label": labels}, shards=8)

    train = data.read("data/train", batch=1024, shuffle=True, transform=lambda rows: (rows["window"], rows["label"]))
    model.fit(train.for_fit(), steps_per_epoch=train.steps, epochs=20)

Writing, checking and looking need numpy and google-crc32c, not TensorFlow; the pipelines of `read` need TensorFlow,
and import it when they are asked for. Nothing heavy is imported with this package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yurt.data.errors import DataError, Fault
    from yurt.data.looking import Inspected, inspect
    from yurt.data.reading import Data, read
    from yurt.data.schema import Feature, Schema
    from yurt.data.verdict import Checked, check
    from yurt.data.writing import Written, write

__all__ = [
    "Checked",
    "Data",
    "DataError",
    "Fault",
    "Feature",
    "Inspected",
    "Schema",
    "Written",
    "check",
    "inspect",
    "read",
    "write",
]

_HOMES = {
    "Checked": "verdict",
    "Data": "reading",
    "DataError": "errors",
    "Fault": "errors",
    "Feature": "schema",
    "Inspected": "looking",
    "Schema": "schema",
    "Written": "writing",
    "check": "verdict",
    "inspect": "looking",
    "read": "reading",
    "write": "writing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'yurt.data' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"yurt.data.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return __all__
