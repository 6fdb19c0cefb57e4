"""Times and sizes as people write them: ``90s``, ``2h30m``, ``512MiB``, ``1.5GB``."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation
from typing import Any

from yurt.job.findings import mistake, quoted
from yurt.job.written import Written, bare, found, number_text

_NUMBER = r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)"
_PLAIN = re.compile(rf"[+-]?{_NUMBER}(?:[eE][+-]?[0-9]+)?")
_LONGEST_TEXT = 40

_SECONDS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_DURATION = re.compile(
    "".join(rf"(?:(?P<{unit}>{_NUMBER}) ?{unit} ?)?" for unit in ("d", "h", "m", "s")) + rf"(?:(?P<ms>{_NUMBER}) ?ms)?"
)
DURATION_PATTERN = r"^\s*(?=[0-9.])" + "".join(rf"([0-9.]+ ?{u} ?)?" for u in _SECONDS) + r"([0-9.]+ ?ms)?\s*$"
"""The written form of a time, for the JSON Schema."""
LONGEST_S = 3_650 * 86_400
"""Ten years, in seconds: the longest time that a job may name."""

_BYTES = {
    "": 1,
    "B": 1,
    **{f"{letter}{end}": 1000**power for power, letter in enumerate("KMGT", 1) for end in ("", "B")},
    **{f"{letter}i{end}": 1024**power for power, letter in enumerate("KMGT", 1) for end in ("", "B")},
    "k": 1000,
    "kB": 1000,
}
_SIZE = re.compile(rf"(?P<number>{_NUMBER})\s*(?P<unit>[A-Za-z]*)")
SIZE_PATTERN = r"^\s*([0-9]+(\.[0-9]*)?|\.[0-9]+)\s*([KMGT]i?B?|kB?|B)?\s*$"
"""The written form of a size, for the JSON Schema."""
SMALLEST_MEMORY = 1024**2
"""1 MiB, in bytes: no process runs in less, so a smaller number is a forgotten unit."""
LARGEST_MEMORY = 1024**5
"""1 PiB, in bytes."""

_TIME_WANTED = "a time such as 90s, 5m, 1h or 2h30m"
_SIZE_WANTED = "a size such as 2GiB, 512MiB or 1.5GB"


def read_duration(raw: Any, *, zero: bool = False) -> float:
    """Seconds of a written time; a bare number is seconds. `zero` says whether 0 makes sense.

    Raises a mistake for anything else, and for a time that is negative or beyond ten years.
    """
    value = bare(raw)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise mistake(f"must be {_TIME_WANTED}, not {found(raw)}")
    text = value.strip() if isinstance(value, str) else number_text(raw)
    seconds: Decimal | None = _plain_number(text, raw)
    if seconds is None:
        written = _DURATION.fullmatch(text) if text and len(text) <= _LONGEST_TEXT else None
        if written is None:
            raise mistake(f"must be {_TIME_WANTED}, not {found(raw)}", _time_hint(text))
        parts = {unit: Decimal(number or 0) for unit, number in written.groupdict().items()}
        seconds = sum((parts[unit] * size for unit, size in _SECONDS.items()), parts["ms"] / 1000)
    if seconds < 0 or (seconds == 0 and not zero):
        raise mistake(f"must be {'0 or more' if zero else 'above 0'}, not {text}")
    if seconds > LONGEST_S:
        raise mistake(f"must be at most ten years, not {text}")
    return float(seconds)


def write_duration(seconds: float) -> str | float:
    """The shortest written form that reads back to exactly `seconds`."""
    for unit, size in _SECONDS.items():
        if seconds and seconds % size == 0:
            return f"{int(seconds / size)}{unit}"
    if seconds and float(Decimal(round(seconds * 1000)) / 1000) == seconds:
        return f"{round(seconds * 1000)}ms"
    return seconds or 0


def read_memory(raw: Any) -> int:
    """Bytes of a written size; a bare number is bytes. ``G`` is 1000³ bytes and ``Gi`` 1024³.

    Raises a mistake for anything else, and for less than 1 MiB or more than 1 PiB.
    """
    value = bare(raw)
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise mistake(f"must be {_SIZE_WANTED}, not {found(raw)}")
    text = value.strip() if isinstance(value, str) else number_text(raw)
    count, unit = _plain_number(text, raw), ""
    if count is None:
        sized = _SIZE.fullmatch(text) if len(text) <= _LONGEST_TEXT else None
        if sized is None:
            raise mistake(f"must be {_SIZE_WANTED}, not {found(raw)}")
        unit = sized["unit"]
        if unit not in _BYTES:
            raise mistake(f"has the unknown unit {quoted(unit)}", _unit_hint(sized["number"], unit))
        count = Decimal(sized["number"])
    if count <= 0:
        raise mistake(f"must be above 0, not {text}")
    if count * _BYTES[unit] > LARGEST_MEMORY:
        raise mistake(f"must be at most 1 PiB (1024TiB), not {text}")
    size = int(count * _BYTES[unit])
    if size < SMALLEST_MEMORY:
        hint = f"did you mean {text}GiB?" if not unit and count < 65_536 else "the least is 1MiB"
        raise mistake(f"is {size} bytes, too little for any process", hint)
    return size


def write_memory(size: int) -> str | int:
    """The shortest written form that reads back to exactly `size` bytes."""
    for unit in ("TiB", "GiB", "MiB", "KiB", "TB", "GB", "MB"):
        if size % _BYTES[unit] == 0:
            return f"{size // _BYTES[unit]}{unit}"
    return size


def read_cpus(raw: Any) -> float:
    """A number of CPUs, which may have a fraction. Raises a mistake for anything else."""
    value = bare(raw)
    wanted = "a number of CPUs such as 2 or 0.5"
    if isinstance(value, bool) or not isinstance(value, int | float):
        hint = None
        if isinstance(value, str) and (text := value.strip().removesuffix("m")) and len(text) < 10:
            divisor = 1 if text == value.strip() else 1000
            hint = f"write {float(text) / divisor:g}" if _PLAIN.fullmatch(text) else None
        raise mistake(f"must be {wanted}, not {found(raw)}", hint)
    text = number_text(raw)
    number = _plain_number(text, raw)
    if number is None:
        raise mistake(f"must be {wanted}, not {found(raw)}")
    if not 0 < number <= 100_000:
        raise mistake(f"must be above 0 and at most 100,000, not {text}")
    return float(number)


def _plain_number(text: str, raw: Any) -> Decimal | None:
    """The number that `text` spells, or None; a number that YAML reads otherwise is a mistake."""
    digits = text.replace("_", "") if isinstance(raw, Written) else text
    if len(digits) <= _LONGEST_TEXT and _PLAIN.fullmatch(digits):
        leading = digits.lstrip("+-")
        if isinstance(raw, Written) and leading.isdecimal() and leading[0] == "0" and len(leading) > 1:
            raise mistake(f"begins with 0, and YAML reads {text} as {raw.value}", f"write {raw.value}")
        try:
            return Decimal(digits)
        except InvalidOperation:
            return None
    if isinstance(raw, Written) and ":" in text:
        raise mistake(f"has a colon, and YAML reads {text} as {raw.value}", "write units, such as 1h30m")
    return None


def _time_hint(text: str) -> str | None:
    match = re.fullmatch(r"([0-9.]+) *([A-Za-z]+)", text)
    if match is None:
        return None
    word = match[2].lower()
    for start, unit in (("ms", "ms"), ("milli", "ms"), ("s", "s"), ("m", "m"), ("h", "h"), ("d", "d")):
        if word.startswith(start) and match[1].count(".") <= 1:
            return f"did you mean {match[1]}{unit}?"
    return None


def _unit_hint(number: str, unit: str) -> str | None:
    for known in ("GiB", "MiB", "KiB", "TiB", "GB", "MB", "kB", "TB"):
        if unit.lower() == known.lower():
            return f"did you mean {number}{known}?"
    if unit[0].upper() in "KMGT":
        letter = unit[0].upper()
        return f"did you mean {number}{letter}iB or {number}{letter}B?"
    return "the units are kB, MB, GB, TB (steps of 1000) and KiB, MiB, GiB, TiB (steps of 1024)"
