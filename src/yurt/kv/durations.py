"""Durations as Consul writes them: ``5s``, ``1m30s``, ``250ms``."""

from __future__ import annotations

import re

_UNITS_S = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)", re.ASCII)


def parse_duration_s(text: str) -> float:
    """``1m30s`` -> 90.0. ``0`` needs no unit. Raises ValueError for anything else."""
    if text == "0":
        return 0.0
    total_s, end = 0.0, 0
    while match := _PART.match(text, end):
        total_s += float(match[1]) * _UNITS_S[match[2]]
        end = match.end()
    if not text or end != len(text):
        raise ValueError(f"not a duration: {text[:40]!r} (such as 15s, 1m30s or 250ms)")
    return total_s


def duration_text(seconds: float) -> str:
    """90.0 -> ``90s``, 0.25 -> ``250ms``; rounded to a millisecond."""
    thousandths = round(seconds * 1000)
    return f"{thousandths // 1000}s" if thousandths % 1000 == 0 else f"{thousandths}ms"
