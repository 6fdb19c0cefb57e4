"""What changed in a run, in sentences. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from yurt.cli.words import counted, output, seconds
from yurt.contract.spec import RunSpec
from yurt.contract.state import CANCELLED, CLOSING, RUNNING, RunState
from yurt.launcher.together import few


def news(spec: RunSpec, before: RunState, after: RunState) -> list[str]:
    """What a person should hear of the way from one state to a later one; states between them may be missing."""
    said = restarts(spec, before, after)
    moved = (before.phase, before.generation) != (after.phase, after.generation)
    if moved and after.phase == RUNNING:
        since = after.causes[-1].at if after.generation and after.causes else after.created_at
        count = len(spec.tasks)
        there = f"all {count} tasks are" if count > 1 else "its task is"
        said.append(f"training ({there} there after {seconds(after.since - since)})")
    if moved and after.phase == CLOSING:
        said.append(
            f"{spec.deciding} finished" + (f"; publishing the model to {output(spec.output)}" if spec.output else "")
        )
    if before.verdict is None and after.verdict is not None and after.verdict.outcome == CANCELLED:
        by_us = after.verdict.message.endswith("Ctrl-C")
        word = "stopping (Ctrl-C again to end at once)" if by_us else f"{after.verdict.message}; its tasks are ending"
        said.append(word)
    return said


def restarts(spec: RunSpec, before: RunState, after: RunState) -> list[str]:
    """``restart 1 of 3: worker/1 was killed by SIGKILL (exit code 137)``, one for each that is new."""
    new = after.restarts - before.restarts
    if new <= 0:
        return []
    causes = after.causes[-new:]
    first = after.restarts - len(causes) + 1
    return [f"restart {number} of {spec.max_restarts}: {cause.message}" for number, cause in enumerate(causes, first)]


def waits(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """``worker/1 waits: REASON`` for what is new, tasks with one reason together."""
    new: dict[str, list[str]] = {}
    for task, reason in after.items():
        if before.get(task) != reason:
            new.setdefault(reason, []).append(task)
    return [
        f"{tasks[0]} waits: {reason}" if len(tasks) == 1 else f"{few(tasks)} wait: {reason}"
        for reason, tasks in new.items()
    ]


def beginning(spec: RunSpec, where: str) -> str:
    """``run weather-k3f9qa on this machine: 2 tasks``."""
    return f"run {spec.run_id} {where}: {counted(len(spec.tasks), 'task')}"
