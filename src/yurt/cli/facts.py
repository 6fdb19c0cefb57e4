"""A run as programs read it: the JSON of `yurt status`, `ls`, `run` and `wait` (docs/commands.md shows it)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from yurt.cli.states import task_state
from yurt.contract.spec import RunSpec, TaskSpec
from yurt.contract.state import Member
from yurt.kv.run_index import Entry
from yurt.launcher.records import RunFolder, Snapshot


def facts(folder: RunFolder, snapshot: Snapshot | None = None) -> dict[str, Any]:
    """Everything of a run; `snapshot` spares a look if the caller has one."""
    record = folder.record()
    spec = RunSpec.from_json(record["spec"])
    seen = snapshot or folder.snapshot()
    return {
        **_run(record, spec, seen),
        "causes": [asdict(cause) for cause in seen.state.causes] if seen else [],
        "tasks": [_task(spec, task, seen, over=folder.host() is None) for task in spec.tasks],
        "folder": str(folder.path) if folder.lasting else None,
    }


def short_facts(folder: RunFolder) -> dict[str, Any]:
    """One run of `yurt ls`."""
    record = folder.record()
    spec = RunSpec.from_json(record["spec"])
    seen = folder.snapshot()
    progress: Mapping[str, Any] = {}
    if seen and (beat := seen.beats.get(spec.deciding)):
        progress = beat.progress
    return {**_run(record, spec, seen), "tasks": len(spec.tasks), "progress": dict(progress)}


def listed_facts(entry: Entry) -> dict[str, Any]:
    """One run of `yurt ls --on`: the same, and how many of its tasks have exited 0."""
    seen = Snapshot(entry.state, {}, {}) if entry.state else None
    record = {"engine": entry.engine, "job_file": None}
    run = _run(record, entry.spec, seen)
    return {**run, "tasks": entry.tasks, "done": entry.done, "progress": dict(entry.progress)}


def _run(record: Mapping[str, Any], spec: RunSpec, seen: Snapshot | None) -> dict[str, Any]:
    state = seen.state if seen else None
    verdict = state.verdict if state else None
    ended_at = state.since if state and verdict else None
    return {
        "run": spec.run_id,
        "job": spec.job_name,
        "engine": record["engine"],
        "job_file": record["job_file"],
        "strategy": spec.strategy,
        "phase": state.phase if state else "submitted",
        "outcome": verdict.outcome if verdict else None,
        "exit_code": verdict.exit_code if verdict else None,
        "message": verdict.message if verdict else None,
        "hint": verdict.hint if verdict else None,
        "first_failure": verdict.task if verdict and verdict.exit else None,
        "submitted_at": spec.submitted_at,
        "ended_at": ended_at,
        "duration_s": round((ended_at or time.time()) - spec.submitted_at, 3),
        "restarts": state.restarts if state else 0,
        "max_restarts": spec.max_restarts,
        "output": spec.output,
        "published": dict(state.published) if state and state.published else None,
    }


def _task(spec: RunSpec, task: TaskSpec, seen: Snapshot | None, *, over: bool) -> dict[str, Any]:
    member: Member | None = seen.members.get(task.name) if seen else None
    beat = seen.beats.get(task.name) if seen else None
    return {
        "task": task.name,
        "state": task_state(spec, seen, task.name, over=over),
        "attempt": member.attempt if member else 0,
        "placed_on": member.placed_on if member else None,
        "address": member.address if member else None,
        "pid": member.pid if member else None,
        "exit": asdict(member.exit) if member and member.exit else None,
        "waits_for": seen.waiting.get(task.name) if seen else None,
        "progress": dict(beat.progress) if beat else {},
    }
