"""Tasks that are lost and that Nomad will never start again by itself: which, and how it is made to.

A batch job's allocation that was drained without a free node, or whose node came back after it had been replaced, ends
``complete``, and for Nomad its task has then succeeded, whatever becomes of the replacement (1.0.18 and 1.6.1, seen).
Only a job that has changed is placed anew. A group's reschedule delay touches no running allocation; it has no
other meaning here, since agents count their own starts. Tasks that had finished are started too: their agents see that
they are done, and leave.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any, Final

#: Evaluations that have not said their last word: Nomad is about to place something, or waits for room.
_OPEN: Final = ("pending", "blocked")


def is_forgotten(values: Iterable[Mapping[str, Any]], evaluations: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a lost task of the job has nobody who starts it.

    `values` are the newest allocations of the lost tasks, `evaluations` all of the job.
    """
    waits = any(each["Status"] in _OPEN for each in evaluations)
    comes = any(each["ClientStatus"] in ("pending", "running") for each in values)
    return not waits and not comes


def changed(job: Mapping[str, Any]) -> dict[str, Any]:
    """The job, as Nomad gave it, with another reschedule delay, by a nanosecond, in each group."""
    again = copy.deepcopy(dict(job))
    for group in again["TaskGroups"]:
        group["ReschedulePolicy"]["Delay"] += 1
    return again
