"""A Nomad job as a tree that knows where each part stands and whether it has been accounted for.

JSON and HCL both end here, under HCL's names (``task``, ``memory``), which are those of Nomad's documentation. Nothing
is lost in silence: what no reader takes is found by `unread` and told.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from yurt.convert.accounted import Accounted
from yurt.convert.converted import Note


@dataclass(slots=True, eq=False)
class Part(Accounted):
    """One value of a job.

    `value` is a mapping or a list of parts, or a scalar. `key` is the name as it is written there, and empty for jobs,
    groups and tasks. `place` names what it stands in, such as ``weather/chief/train``. `line` counts from 1; it is None
    for JSON.
    """

    value: Any
    key: str
    place: str
    file: str
    line: int | None = None
    taken: bool = field(default=False, repr=False)

    def get(self, key: str) -> Part | None:
        """The part of a mapping under this key, and accounted for; None where there is none or it is null."""
        inner = self.value.get(key) if isinstance(self.value, dict) else None
        if not isinstance(inner, Part):
            return None
        inner.taken = True
        return None if inner.value is None else inner

    def peek(self, key: str) -> Part | None:
        """The same, without accounting for it."""
        inner = self.value.get(key) if isinstance(self.value, dict) else None
        return inner if isinstance(inner, Part) and inner.value is not None else None

    def all(self, key: str) -> list[Part]:
        """The parts of a list under this key; one that stands alone counts as a list."""
        inner = self.get(key)
        if inner is None:
            return []
        items = inner.value if isinstance(inner.value, list) else [inner]
        for item in items:
            item.taken = True
        return list(items)

    def note(self, message: str, key: str | None = None) -> Note:
        """Something to tell about this part, or about the part of it under `key`."""
        return Note(self.inside if key is None else within(self.inside, key), message, self.file, self.line)

    @property
    def inside(self) -> str:
        """The place of what stands in it: ``weather/chief/train: config``."""
        return within(self.place, self.key)

    @property
    def where(self) -> str:
        """``chief.nomad:12`` or ``chief.json``, to begin a sentence."""
        return self.file if self.line is None else f"{self.file}:{self.line}"


def unread(part: Part) -> Iterator[tuple[str, Part]]:
    """Every part that nobody has taken, with its path in HCL's names: the outermost ones only."""
    yield from _unread(part, "")


def _unread(part: Part, path: str) -> Iterator[tuple[str, Part]]:
    if not part.taken:
        yield path, part
    elif isinstance(part.value, dict):
        for key, inner in part.value.items():
            yield from _unread(inner, f"{path}.{key}" if path else key)
    elif isinstance(part.value, list):
        for inner in part.value:
            yield from _unread(inner, path)


def within(place: str, key: str) -> str:
    """The place one step further in: the names of job, group and task, then the keys."""
    return (f"{place}.{key}" if ": " in place else f"{place}: {key}") if place and key else place or key


def empty(value: Any) -> bool:
    """Whether a plain value says nothing: null, or a container that holds nothing else."""
    if isinstance(value, dict):
        return all(empty(inner) for inner in value.values())
    if isinstance(value, list):
        return all(empty(inner) for inner in value)
    return value is None or value == ""
