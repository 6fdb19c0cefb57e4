"""The runs of a cluster, by the owners of their objects and what their keepers have left."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from yurt.contract.spec import CHIEF, RunSpec
from yurt.contract.state import RUNNING, RunState, Verdict
from yurt.engines.kubernetes import labels, names
from yurt.kv.run_index import Entry

SELECTOR: Final = f"{labels.MANAGED},{labels.COMPONENT}={names.KEEPER}"
_OVER: Final = ("Succeeded", "Failed")


def listed(owners: Sequence[Mapping[str, Any]], keepers: Sequence[Mapping[str, Any]]) -> list[Entry]:
    """One entry for each owner that this version of Yurt can read, the newest first."""
    pods = {pod["metadata"].get("labels", {}).get(labels.RUN): pod for pod in keepers}
    found = []
    for job in owners:
        with contextlib.suppress(KeyError, ValueError, TypeError):  # of another version of Yurt
            found.append(_entry(job, pods.get(job["metadata"]["labels"][labels.RUN])))
    return sorted(found, key=lambda entry: entry.spec.submitted_at, reverse=True)


def _entry(job: Mapping[str, Any], keeper: Mapping[str, Any] | None) -> Entry:
    notes = job["metadata"]["annotations"]
    spec = RunSpec.from_json({**json.loads(notes[labels.SPEC_NOTE]), "tasks": ()})
    deciding = notes.get(labels.DECIDING_NOTE, f"{CHIEF}/0")
    state = None
    if keeper is not None and keeper["status"].get("phase") == "Running":
        state = RunState(0, RUNNING, spec.submitted_at, spec.submitted_at)
    words = last_words(keeper) if keeper is not None and keeper["status"].get("phase") in _OVER else {}
    if words.get("verdict"):
        at = words.get("at", spec.submitted_at)
        state = RunState.first(spec.submitted_at).ended(Verdict.from_json(words["verdict"]), at, 0.0)
    done = int(words.get("done", 0))
    return Entry(spec, "kubernetes", int(notes[labels.TASKS_NOTE]), deciding, state, done, words.get("progress", {}))


def last_words(pod: Mapping[str, Any]) -> dict[str, Any]:
    """What a keeper has left in its pod's status; empty where that is nothing."""
    for each in pod["status"].get("containerStatuses", ()):
        ended = each.get("state", {}).get("terminated") or {}
        with contextlib.suppress(ValueError):
            value = json.loads(ended.get("message", ""))
            if isinstance(value, dict):
                return value
    return {}
