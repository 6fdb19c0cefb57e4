"""From the start of `yurt run` to the first step of the deciding task, in parts."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.nomad.gangs import LOCAL, TASKS, Bench, Gang, job_moments

#: What each part ends with, and how it is called.
PARTS = {
    "submitted": "Nomad has the job",
    "started": "both agents start",
    "script": "both scripts start",
    "tensorflow": "TensorFlow is imported",
    "strategy": "the workers have met",
    "step": "**first step**",
}


def once(bench: Bench, engine: str) -> dict[str, float]:
    """Seconds from the start of the command to the end of each part; those of Nomad's are missing without it."""
    with bench.gang(engine) as gang:
        gang.all_train(0)
        found = _of(gang)
        if engine != LOCAL:
            found |= job_moments(bench.client, gang.run.run_id)
    return {part: found[part] - gang.began for part in PARTS if part in found}


def _of(gang: Gang) -> dict[str, float]:
    """The later of both workers' moments, but the deciding task's first step."""
    moments = [gang.moments(task, 0) for task in TASKS]
    found = {part: max(each[part] for each in moments) for part in ("script", "tensorflow", "strategy")}
    return found | {"step": moments[0]["step"]}


def line(engine: str, run: Mapping[str, float]) -> str:
    return f"{engine:9} " + "  ".join(f"{part} {seconds:.2f}" for part, seconds in run.items())


def table(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """A row an engine: medians, the first step with least and most."""
    rows = [f"| seconds until | {' | '.join(PARTS.values())} |", "|---" * (len(PARTS) + 1) + "|"]
    for engine, each in runs.items():
        cells: list[Any] = []
        for part in PARTS:
            seconds = [run[part] for run in each if part in run]
            text = f"{statistics.median(seconds):.2f}" if seconds else ""
            cells.append(f"**{text}** ({min(seconds):.2f} to {max(seconds):.2f})" if part == "step" else text)
        rows.append(f"| {engine if engine == LOCAL else f'Nomad, {engine}'} | {' | '.join(cells)} |")
    return "\n".join(rows)
