"""From the start of the command to TensorFlow's first step, which all workers take together, in parts."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from benchmarks.kubernetes.gangs import IN_WORDS, LOCAL, TASKS, Bench

#: What each part ends with, and how it is called.
PARTS: Final = {
    "line": "both scripts start",
    "tensorflow": "TensorFlow is imported",
    "strategy": "the workers have met",
    "step": "**first step**",
}


def once(bench: Bench, way: str) -> dict[str, float]:
    """Seconds from the start of the command until the later task has come so far."""
    place = {} if way == LOCAL else {"image": bench.cluster.tensorflow_image}
    with bench.gang(way, script="steps.py", **place) as gang:
        return {part: max(gang.mark(part, task) for task in TASKS) - gang.began for part in reversed(PARTS)}


def line(way: str, run: Mapping[str, float]) -> str:
    return f"{way:8} " + "  ".join(f"{part} {run[part]:.2f}" for part in PARTS)


def table(runs: Mapping[str, Sequence[Mapping[str, float]]]) -> str:
    """A row a way: medians, the first step with least and most, and what came between the script's start and it."""
    rows = [f"| seconds until | {' | '.join(PARTS.values())} | from the script's start to it |", "|---" * 6 + "|"]
    for way, each in runs.items():
        cells = [f"{statistics.median(run[part] for run in each):.2f}" for part in PARTS]
        steps = [run["step"] for run in each]
        cells[-1] = f"**{cells[-1]}** ({min(steps):.2f} to {max(steps):.2f})"
        cells.append(f"{statistics.median(run['step'] - run['line'] for run in each):.2f}")
        rows.append(f"| {IN_WORDS[way]} | {' | '.join(cells)} |")
    return "\n".join(rows)
