"""Nomad's durations: nanoseconds in JSON, texts such as ``1h30m`` in HCL."""

from __future__ import annotations

import re
from typing import Any, Final

NANOSECONDS: Final = 1_000_000_000
_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PIECE: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)")


def seconds(value: Any) -> float | None:
    """Seconds of a duration; None for what is none."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value / NANOSECONDS
    if not isinstance(value, str):
        return None
    text = value.strip()
    pieces = _PIECE.findall(text)
    if not pieces or "".join(number + unit for number, unit in pieces) != text:
        return 0.0 if text == "0" else None
    return float(f"{sum(float(number) * _UNITS[unit] for number, unit in pieces):.9f}")
