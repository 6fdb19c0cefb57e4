"""Findings about an engine's ground, as lines for people and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from yurt.cli.marks import DIM, GREEN, RED, YELLOW, painted
from yurt.engines.finding import Finding, Level

_MARKS: Final = {
    Level.GOOD: ("good", GREEN),
    Level.UNKNOWN: ("unknown", DIM),
    Level.WARNING: ("warning", YELLOW),
    Level.PROBLEM: ("problem", RED),
}
_WIDTH: Final = max(len(word) for word, _ in _MARKS.values())
_CHECK_WIDTH: Final = 9


def lines(finding: Finding, *, colour: bool) -> Iterator[str]:
    """``warning  storage    what``, then why and what mends it, each below."""
    word, code = _MARKS[finding.level]
    yield f"{painted(f'{word:<{_WIDTH}}', code, colour=colour)}  {finding.check:<{_CHECK_WIDTH}}  {finding.what}"
    indent = " " * (_WIDTH + _CHECK_WIDTH + 4)
    if finding.level is not Level.GOOD and finding.why:
        yield f"{indent}why:  {finding.why}"
    for number, line in enumerate(finding.mend.splitlines()):
        yield f"{indent}{'mend: ' if number == 0 else '      '}{line}"


def summary(findings: Iterable[Finding]) -> str:
    """``nothing hinders a run; 1 warning``."""
    count = dict.fromkeys(Level, 0)
    for each in findings:
        count[each.level] += 1
    problems, warnings = count[Level.PROBLEM], count[Level.WARNING]
    told = f"{problems} problem{'s' * (problems != 1)} hinder{'s' * (problems == 1)} runs" if problems else ""
    told = told or "nothing hinders a run"
    told += f"; {warnings} warning{'s' * (warnings != 1)}" if warnings else ""
    return told + (f"; {count[Level.UNKNOWN]} not known" if count[Level.UNKNOWN] else "")


def as_value(finding: Finding) -> dict[str, Any]:
    """For machines."""
    return {
        "check": finding.check,
        "level": finding.level.value,
        "what": finding.what,
        "why": finding.why or None,
        "mend": finding.mend or None,
    }
