"""Where in a file every part of a job stands, and what a reader is told beside the data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from yurt.errors import Problem
from yurt.job.findings import Finding, Loc, dotted

if TYPE_CHECKING:
    from pydantic import BaseModel

Place = tuple[int, int]
"""Line and column, both from 1."""


@dataclass(frozen=True, slots=True)
class Positions:
    """The place of every key and list item of one file, by its path; the root is ``()``."""

    file: str
    places: Mapping[Loc, Place]

    def place(self, at: Loc) -> Place:
        """The place of the deepest part of the path that the file has."""
        while at not in self.places and at:
            at = at[:-1]
        return self.places.get(at, (1, 1))


@dataclass(frozen=True, slots=True)
class Reading:
    """What is known while a job is validated: the file, if there is one, and the engines' options."""

    positions: Positions | None = None
    engine_options: Mapping[str, type[BaseModel]] = field(default_factory=dict)

    def problems(self, findings: Iterable[Finding]) -> list[Problem]:
        """The findings as problems, in the order of the file."""
        problems = [self._problem(one) for one in findings]
        if self.positions is not None:
            problems.sort(key=lambda problem: (problem.line or 0, problem.column or 0))
        return problems

    def _problem(self, one: Finding) -> Problem:
        key = dotted(one.at)
        if self.positions is None:
            return Problem(key, one.message, one.hint)
        line, column = one.place or self.positions.place(one.at)
        return Problem(key, one.message, one.hint, self.positions.file, line, column)
