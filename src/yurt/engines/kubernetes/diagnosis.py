"""Why a task does not start, and what was read of the cluster to find that out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

_MOST_LETTERS: Final = 400
Value = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """In plain words. `hopeless`: waiting cannot help, the job or the cluster's rules have to change."""

    reason: str
    hopeless: bool = False


@dataclass(frozen=True, slots=True)
class Around:
    """What is known beside a pod; empty or None where it was not read, or may not be.

    `events` of the run's objects, the newest last; `nodes` and `pods` of the whole cluster.
    """

    events: Sequence[Value] = ()
    nodes: Sequence[Value] | None = None
    pods: Sequence[Value] | None = None
    claims: Mapping[str, Value] | None = None
    jobs: Sequence[Value] = ()
    tfjobs: Sequence[Value] = ()

    def last_event(self, name: str, *reasons: str) -> Value | None:
        """The newest event of an object for one of these reasons."""
        found = [
            each for each in self.events if each["involvedObject"].get("name") == name and each["reason"] in reasons
        ]
        return found[-1] if found else None


def short(text: Any) -> str:
    """In one line, without what only machines read: addresses of the same request, uids."""
    line = " ".join(str(text or "").split())
    line = re.sub(r"_[\w.-]+\([0-9a-f-]{36}\)", "", line)
    return line if len(line) <= _MOST_LETTERS else f"{line[: _MOST_LETTERS - 3]}..."
