"""What the live lines of a run say: pure, from its snapshot to cells of text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from yurt.cli import words
from yurt.cli.states import RUNNING, task_state
from yurt.contract.progress import in_words
from yurt.contract.spec import RunSpec
from yurt.contract.state import CHECKING, CLOSING, ENDED, JOINING
from yurt.contract.state import RUNNING as TRAINING
from yurt.launcher.records import Snapshot

_PHASES: Final = {
    JOINING: "starting",
    CHECKING: "connecting",
    TRAINING: "training",
    CLOSING: "finishing",
    ENDED: "ending",
}
#: Characters of the bar that says how far a task is.
BAR: Final = 12
#: Where the metrics stand among a row's cells: they are the first to go where the terminal is narrow.
METRICS: Final = 3
#: As many metrics beside the loss are shown.
_METRICS: Final = 2


@dataclass(frozen=True, slots=True)
class Row:
    """One task: `share` is how much of its training is done, from 0 to 1, if it can be told."""

    task: str
    state: str
    share: float | None
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Frame:
    """The live lines: one of the run, one for each task, and one of those that the screen has no room for."""

    head: str
    rows: tuple[Row, ...]
    more: str = ""


def frame(spec: RunSpec, snapshot: Snapshot, now: float, most_rows: int) -> Frame:
    """The lines as they should be now, at most `most_rows` of them for tasks."""
    state = snapshot.state
    parts = [spec.run_id, _PHASES[state.phase], words.clock(now - spec.submitted_at)]
    if state.restarts:
        parts.append(f"restarts {state.restarts} of {spec.max_restarts}")
    names = [task.name for task in spec.tasks]
    shown = names if len(names) <= most_rows else names[: max(most_rows - 1, 0)]
    rows = tuple(_row(spec, snapshot, name) for name in shown)
    return Frame("  ".join(parts), rows, _more(spec, snapshot, names[len(shown) :]))


def bar(share: float) -> tuple[str, str]:
    """The done and the open part of a bar."""
    done = round(max(0.0, min(share, 1.0)) * BAR)
    return "━" * done, "─" * (BAR - done)


def _more(spec: RunSpec, snapshot: Snapshot, rest: list[str]) -> str:
    if not rest:
        return ""
    states = [task_state(spec, snapshot, name, over=False) for name in rest]
    counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(states))
    return f"and {words.counted(len(rest), 'task')} more: {counts}"


def _row(spec: RunSpec, snapshot: Snapshot, task: str) -> Row:
    beat = snapshot.beats.get(task)
    state = task_state(spec, snapshot, task, over=False)
    progress = beat.progress if beat and state in (RUNNING, "finished", "publishing") else {}
    return Row(task, state, _share(progress), _cells(progress))


def _cells(progress: Mapping[str, Any]) -> tuple[str, ...]:
    metrics = dict(list((progress.get("metrics") or {}).items())[:_METRICS])
    return (
        _part(progress, "epoch", "epochs"),
        _part(progress, "step", "steps"),
        _part(progress, "loss"),
        in_words({"metrics": metrics}).replace(", ", "  "),
        _part(progress, "examples_per_s"),
        _part(progress, "input_wait"),
    )


def _part(progress: Mapping[str, Any], *names: str) -> str:
    return in_words({name: progress[name] for name in names if progress.get(name) is not None})


def _share(progress: Mapping[str, Any]) -> float | None:
    epoch, epochs, step, steps = (_number(progress.get(name)) for name in ("epoch", "epochs", "step", "steps"))
    within = step / steps if steps else 0.0
    if epochs:
        return (epoch - 1 + within) / epochs if epoch else 0.0
    return within if steps else None


def _number(value: Any) -> float:
    """A number, as it should be: the script may have written anything. What is none, or below 0, counts as 0."""
    return max(float(value), 0.0) if isinstance(value, int | float) else 0.0
