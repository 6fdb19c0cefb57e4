"""The functions of HCL2 that Yurt computes: those that job files use for text, lists and objects.

They do what those of Nomad 1.0.18 do (compared with it) for the values that job files hold. Functions that read files,
make random values or know the time are not here: their values belong to the machine and the moment of `nomad job run`.
"""

from __future__ import annotations

import base64
import itertools
import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, Final


def _text(value: Any) -> str:
    if value is None or isinstance(value, list | dict):
        raise ValueError("a list, an object or null is no text")
    return value if isinstance(value, str) else json.dumps(value)


def _format(template: str, *values: Any) -> str:
    given = iter(values)

    def one(match: re.Match[str]) -> str:
        if match["verb"] == "%":
            return "%"
        value = next(given)
        verb = match["verb"]
        if verb == "s" or (verb == "v" and not isinstance(value, list | dict)):
            return f"%{match['flags']}s" % _text(value)
        if verb == "v":
            return _json(value)
        if verb == "q":
            return json.dumps(_text(value))
        return f"%{match['flags']}{verb}" % (int(value) if verb == "d" else value)

    return re.sub(r"%(?P<flags>[-+ 0#]*[0-9]*(?:\.[0-9]+)?)(?P<verb>[svqdfegx%])", one, template)


def _json(value: Any) -> str:
    """JSON as Go writes it: no spaces, keys in order, and <, > and & escaped."""
    text = json.dumps(value, separators=(",", ":"), sort_keys=True, ensure_ascii=False)
    return "".join({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026"}.get(letter, letter) for letter in text)


def _merge(*values: Mapping[str, Any] | None) -> dict[str, Any]:
    return {key: inner for value in values if value for key, inner in value.items()}


def _flat(values: list[Any]) -> list[Any]:
    return list(itertools.chain.from_iterable(_flat(value) if isinstance(value, list) else [value] for value in values))


def _range(*numbers: int) -> list[int]:
    start, end = (0, numbers[0]) if len(numbers) == 1 else numbers[:2]
    step = numbers[2] if len(numbers) > 2 else (1 if end >= start else -1)
    return list(itertools.islice(range(start, end, step), 1025))


def _replace(text: str, old: str, new: str) -> str:
    if len(old) > 1 and old.startswith("/") and old.endswith("/"):
        raise ValueError("a regular expression of Go is not computed here")
    return text.replace(old, new)


def _lookup(values: Mapping[str, Any], key: str, *default: Any) -> Any:
    return values.get(key, *default) if default else values[key]


def _length(values: Any) -> int:
    if isinstance(values, str):
        raise TypeError("a text has no length in HCL2")
    return len(values)


FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "abs": abs,
    "base64decode": lambda text: base64.b64decode(text, validate=True).decode(),
    "base64encode": lambda text: base64.b64encode(text.encode()).decode(),
    "ceil": math.ceil,
    "chomp": lambda text: text.rstrip("\r\n"),
    "coalesce": lambda *values: next(value for value in values if value is not None),
    "compact": lambda values: [value for value in values if value],
    "concat": lambda *values: [item for value in values for item in value],
    "contains": lambda values, item: item in values,
    "distinct": lambda values: [item for at, item in enumerate(values) if item not in values[:at]],
    "element": lambda values, index: values[index % len(values)],
    "flatten": _flat,
    "floor": math.floor,
    "format": _format,
    "join": lambda between, *values: between.join(_text(item) for value in values for item in value),
    "jsondecode": json.loads,
    "jsonencode": _json,
    "keys": sorted,
    "length": _length,
    "lookup": _lookup,
    "lower": lambda text: _text(text).lower(),
    "max": max,
    "merge": _merge,
    "min": min,
    "range": _range,
    "replace": _replace,
    "sort": sorted,
    "split": lambda between, text: text.split(between),
    "strrev": lambda text: text[::-1],
    "substr": lambda text, start, length: text[start:] if length < 0 else text[start : start + length],
    "trim": lambda text, letters: text.strip(letters),
    "trimprefix": lambda text, start: text.removeprefix(start),
    "trimspace": lambda text: text.strip(),
    "trimsuffix": lambda text, end: text.removesuffix(end),
    "upper": lambda text: _text(text).upper(),
    "values": lambda values: [values[key] for key in sorted(values)],
}
