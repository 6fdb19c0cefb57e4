"""Kubernetes' quantities, such as ``1500m``, ``2Gi`` and ``1e3``: to numbers, and numbers to words."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Final

_FORM: Final = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:([eE][+-]?\d+)|([numkMGTPE]|[KMGTPE]i))?")
_SCALES: Final = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{letter: Decimal(1000) ** power for power, letter in enumerate("kMGTPE", 1)},
    **{f"{letter}i": Decimal(1024) ** power for power, letter in enumerate("KMGTPE", 1)},
}


def quantity(value: Any) -> Decimal:
    """The number that a quantity stands for: cores, bytes or a count. Raises ValueError where it is none."""
    text = str(value).strip()
    form = _FORM.fullmatch(text)
    if form is None:
        raise ValueError(f"{text!r} is no quantity: a number with m, k, M, G, T, P, E, Ki, Mi, Gi, Ti, Pi or Ei")
    number, exponent, suffix = form.groups()
    if exponent:
        return Decimal(number + exponent)
    return Decimal(number) * _SCALES.get(suffix or "", Decimal(1))


def in_words(resource: str, amount: Decimal) -> str:
    """An amount of a resource as a person would write it: ``1500m``, ``2Gi``, ``3``; rounded down to what is seen."""
    if resource == "memory" or "storage" in resource or resource.startswith("hugepages"):
        return _bytes_in_words(amount)
    if amount == amount.to_integral_value():
        return str(int(amount))
    return f"{int(amount * 1000)}m"


def _bytes_in_words(amount: Decimal) -> str:
    for suffix in ("Ei", "Pi", "Ti", "Gi", "Mi", "Ki"):
        scale = _SCALES[suffix]
        if amount >= scale:
            whole, rest = divmod(amount, scale)
            tenth = int(rest * 10 / scale)
            return f"{int(whole)}.{tenth}{suffix}" if tenth and whole < 100 else f"{int(whole)}{suffix}"
    return str(int(amount))
