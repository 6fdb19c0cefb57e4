"""Times, sizes and places as people say them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import unquote


def seconds(value: float) -> str:
    """``0.4 s``, ``12 s``, ``3 min 5 s``, ``2 h 7 min``, ``3 d 4 h``."""
    value = max(value, 0.0)
    if value < 9.95:
        return f"{value:.1f} s"
    whole = round(value)
    for size, name, below, part in ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "min"), (60, "min", 1, "s")):
        if whole >= size:
            rest = whole % size // below
            return f"{whole // size} {name}" + (f" {rest} {part}" if rest else "")
    return f"{whole} s"


def clock(value: float) -> str:
    """``0:07``, ``12:34``, ``3:05:00``: a time that is looked at while it passes."""
    minutes, second = divmod(int(max(value, 0.0)), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def size(count: float) -> str:
    """``12 B``, ``3.4 MB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def counted(count: int, noun: str) -> str:
    """``1 task``, ``2 tasks``."""
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def listed(names: Sequence[str]) -> str:
    """``a``, ``a and b``, ``a, b and 7 more``."""
    if len(names) > 6:
        return f"{', '.join(names[:5])} and {len(names) - 5} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def output(url: str) -> str:
    """An output as a person would type it: folders as paths."""
    scheme, _, path = url.partition("://")
    return place(unquote(path)) if scheme == "file" else url


def place(path: str) -> str:
    """A path as seen from here: ``./models/x`` where it is below the current folder; a URL as it is."""
    if "://" in path:
        return path
    try:
        below = Path(path).relative_to(Path(os.getcwd()))  # noqa: PTH109 - it raises what we catch
    except (ValueError, OSError):
        return path
    return f"./{below}"
