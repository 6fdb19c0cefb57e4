"""From the start of the command to the first line of the deciding task, in parts."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.kubernetes.gangs import IN_WORDS, LOCAL, TASKS, Bench, ByYurt, Gang, first_process, started_at
from tests.support.runs import wait_until

#: What each part ends with, and how it is called.
PARTS = {
    "sent": "all objects are sent",
    "keeper": "the keeper answers",
    "started": "both tasks' containers start",
    "joined": "both have joined",
    "running": "both reach each other",
    "line": "**first line**",
    "lines": "of the later task",
}


def once(bench: Bench, way: str) -> dict[str, float]:
    """Seconds from the start of the command to the end of each part; those that a way does not have are missing."""
    with bench.gang(way) as gang:
        found = _of(bench, gang, way)
        return {part: found[part] - gang.began for part in PARTS if part in found}


def _of(bench: Bench, gang: Gang, way: str) -> dict[str, float]:
    found = {}
    if isinstance(gang, ByYurt) and way != LOCAL:
        found["sent"] = gang.sent()
    lines = [gang.line(task) for task in TASKS]
    found |= {"line": lines[0], "lines": max(lines)}
    if isinstance(gang, ByYurt) and way != LOCAL:
        gang.all_train(0)
        found |= _pods(bench, gang)
    return found


def _pods(bench: Bench, gang: ByYurt) -> dict[str, float]:
    pods = [gang.run.member(task)["placed_on"].rpartition("/")[2] for task in TASKS]  # type: ignore[index]
    first = f"yurt: keeps the state of {gang.run.run_id}"

    def said() -> dict[str, float] | None:
        log = bench.keeper_log(gang.run.run_id)
        return log if "yurt: generation 0: running" in log else None

    log = wait_until(said, 10, "the keeper's word")
    return {
        "started": max(started_at(first_process(pod)) for pod in pods),
        "keeper": log[first],
        # A gang that is quick is in the next phase before the keeper has seen that it was in this one.
        "joined": log.get("yurt: generation 0: checking", log["yurt: generation 0: running"]),
        "running": log["yurt: generation 0: running"],
    }


def line(way: str, run: Mapping[str, float]) -> str:
    return f"{way:8} " + "  ".join(f"{part} {seconds:.2f}" for part, seconds in run.items())


def table(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """A row a way: medians, the first line with least and most."""
    rows = [f"| seconds until | {' | '.join(PARTS.values())} |", "|---" * (len(PARTS) + 1) + "|"]
    for way, each in runs.items():
        cells: list[Any] = []
        for part in PARTS:
            seconds = [run[part] for run in each if part in run]
            text = f"{statistics.median(seconds):.2f}" if seconds else ""
            cells.append(f"**{text}** ({min(seconds):.2f} to {max(seconds):.2f})" if part == "line" else text)
        rows.append(f"| {IN_WORDS[way]} | {' | '.join(cells)} |")
    return "\n".join(rows)
