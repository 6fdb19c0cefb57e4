"""Reasons of several tasks in few words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_NAMED: Final = 4


def together(reasons: Mapping[str, str]) -> str:
    """``worker/0, worker/1: REASON; ps/0: ANOTHER``: tasks with one reason stand together."""
    tasks_of: dict[str, list[str]] = {}
    for task, reason in sorted(reasons.items()):
        tasks_of.setdefault(reason, []).append(task)
    return "; ".join(f"{few(tasks)}: {reason}" for reason, tasks in tasks_of.items())


def few(tasks: list[str]) -> str:
    """Their names, or the first of them."""
    more = f" and {len(tasks) - _NAMED} more" if len(tasks) > _NAMED else ""
    return ", ".join(tasks[:_NAMED]) + more
