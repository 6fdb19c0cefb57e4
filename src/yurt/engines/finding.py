"""What was found when the ground of an engine was looked at: one fact, why it matters, and what mends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Level(Enum):
    """How much a finding matters."""

    GOOD = "good"
    UNKNOWN = "unknown"  # this account may not see it
    WARNING = "warning"  # some runs will not work, or not as well as they could
    PROBLEM = "problem"  # no run will work


@dataclass(frozen=True, slots=True)
class Finding:
    """`check` is the word by which people find it, `mend` a command or a line for a file; both of one line or more."""

    check: str
    level: Level
    what: str
    why: str = ""
    mend: str = ""


def good(check: str, what: str) -> Finding:
    """All is well."""
    return Finding(check, Level.GOOD, what)


def unknown(check: str, what: str, why: str = "", mend: str = "") -> Finding:
    """It cannot be seen from here."""
    return Finding(check, Level.UNKNOWN, what, why, mend)


def warning(check: str, what: str, why: str, mend: str = "") -> Finding:
    """It hinders some runs."""
    return Finding(check, Level.WARNING, what, why, mend)


def problem(check: str, what: str, why: str, mend: str = "") -> Finding:
    """It hinders every run."""
    return Finding(check, Level.PROBLEM, what, why, mend)


def worst(findings: Iterable[Finding]) -> Level:
    """The level of the gravest; GOOD where there is none."""
    order = list(Level)
    return max((each.level for each in findings), key=order.index, default=Level.GOOD)
