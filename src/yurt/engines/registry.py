"""Finds engines by name: Yurt's own and those that other packages register."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points

from pydantic import BaseModel, ConfigDict

from yurt.engines.base import Engine
from yurt.errors import EngineError, UsageError

GROUP = "yurt.engines"


class _Anything(BaseModel):
    model_config = ConfigDict(extra="allow")


def names() -> list[str]:
    """The names of all registered engines."""
    return sorted(_entries())


def load(name: str) -> type[Engine]:
    """The engine's class. Raises UsageError for a name nobody has, EngineError for one that does not load."""
    entries = _entries()
    if name not in entries:
        near = difflib.get_close_matches(name, entries, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(sorted(entries))}"
        raise UsageError(f"there is no engine {name!r}", hint=hint)
    try:
        engine: type[Engine] = entries[name].load()
    except Exception as error:  # somebody else's package: whatever it raises, this is what it means
        raise EngineError(f"the engine {name!r} ({entries[name].value}) does not load: {error}") from error
    return engine


def all_options() -> Mapping[str, type[BaseModel]]:
    """The option models of all engines, for checking a job file; of one that does not load anything is taken.

    Why it does not load is said where a run is to use it.
    """
    found: dict[str, type[BaseModel]] = {}
    for name in names():
        try:
            found[name] = load(name).options
        except EngineError:
            found[name] = _Anything
    return found


def _entries() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}
