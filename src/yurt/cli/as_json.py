"""JSON as any program reads it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def as_line(value: Any) -> str:
    """On one line."""
    return json.dumps(_plain(value), allow_nan=False)


def as_page(value: Any) -> str:
    """Indented, for people too."""
    return json.dumps(_plain(value), allow_nan=False, indent=2)


def _plain(value: Any) -> Any:
    """JSON has no NaN and no infinity, which a loss may well be: they become the texts "nan", "inf" and "-inf"."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return value
