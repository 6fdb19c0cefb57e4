"""What a container says at its end, where Kubernetes keeps it: at most 4096 bytes (Kubernetes 1.36) in a file."""
# The agent does without pathlib, and this is the agent's process:
# ruff: noqa: PTH123

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, Final

from yurt.contract.spec import RunSpec
from yurt.contract.state import Beat, Member, RunState

LIMIT_BYTES: Final = 4096
#: Characters of one text that is cut.
_SHORT: Final = 200

_Value = dict[str, Any]


def say(path: str, text: str) -> None:
    """Write the termination message; a place that does not take it is no hindrance to the end."""
    data = text.encode()[:LIMIT_BYTES].decode(errors="ignore")
    try:
        with open(path, "w", encoding="utf-8") as file:
            file.write(data)
    except OSError as error:
        print(f"yurt: {path} could not be written: {error.strerror or error}", flush=True)


def keepers(spec: RunSpec, state: RunState, members: Mapping[str, Member], beats: Mapping[str, Beat]) -> str:
    """The keeper's, as JSON: the verdict and what is worth knowing of the tasks, as much as fits.

    ``{"verdict": {...}, "at": 1790000000.0, "generation": 1, "restarts": 1, "done": 2, "progress": {...},
    "published": {...}, "causes": [...], "members": {"worker/0": {"status": "exited", "attempt": 1, "placed_on":
    "node/pod", "exit": {...}}}}``; `yurt.contract.state` says what is in them, and `progress` is the deciding task's.
    What does not fit is empty.
    """
    assert state.verdict is not None
    beat = beats.get(spec.deciding)
    value: _Value = {
        "verdict": asdict(state.verdict),
        "at": state.since,
        "generation": state.generation,
        "restarts": state.restarts,
        "done": sum(member.exit is not None and member.exit.code == 0 for member in members.values()),
        "progress": dict(beat.progress) if beat else {},
        "published": state.published,
        "causes": [asdict(cause) for cause in state.causes],
        "members": {task: _short(member) for task, member in sorted(members.items())},
    }
    for smaller in _STEPS:
        text = json.dumps(value, separators=(",", ":"))
        if len(text) <= LIMIT_BYTES:
            return text
        smaller(value)
    return json.dumps(value, separators=(",", ":"))


def _short(member: Member) -> _Value:
    end = member.exit
    return {
        "status": member.status,
        "attempt": member.attempt,
        "placed_on": member.placed_on,
        "exit": {key: each for key, each in asdict(end).items() if key != "last_lines" and each is not None}
        if end
        else None,
    }


def _few_causes(value: _Value) -> None:
    value["causes"] = value["causes"][-2:]


def _few_lines(value: _Value) -> None:
    if end := value["verdict"]["exit"]:
        end["last_lines"] = [line[-_SHORT:] for line in end["last_lines"][-5:]]


def _no_lines(value: _Value) -> None:
    if end := value["verdict"]["exit"]:
        end["last_lines"] = []


def _short_members(value: _Value) -> None:
    for member in value["members"].values():
        if member["exit"]:
            member["exit"] = {key: member["exit"][key] for key in ("code", "reason", "at")}


def _no_members(value: _Value) -> None:
    value["members"] = {}


def _no_progress(value: _Value) -> None:
    value["progress"] = {}


def _no_causes(value: _Value) -> None:
    value["causes"] = []


def _short_texts(value: _Value) -> None:
    """The last: nothing is left that could be long but texts."""

    def cut(each: Any) -> Any:
        if isinstance(each, dict):
            return {key: cut(inner) for key, inner in each.items()}
        return each[:_SHORT] if isinstance(each, str) else each

    value["verdict"] = cut(value["verdict"])
    value["published"] = cut(value["published"])


_STEPS: Final[tuple[Callable[[_Value], None], ...]] = (
    _few_causes,
    _few_lines,
    _short_members,
    _no_causes,
    _no_lines,
    _no_members,
    _no_progress,
    _short_texts,
)
