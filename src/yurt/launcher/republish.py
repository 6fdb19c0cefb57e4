"""Publishes the model of a run that has trained: after a failed publish, again, or elsewhere."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

from yurt.contract.state import PUBLISH_FAILED, SUCCEEDED, Verdict
from yurt.errors import UsageError
from yurt.launcher.records import RunFolder, Snapshot
from yurt.storage.publish import Published, publish


def republish(folder: RunFolder, to: str | None) -> Published:
    """Publish, and note it in the run's record.

    `to` is a URL in place of the job's output. Raises StorageFailed (a PublishFailed: the model is kept) or
    UsageError where there is no model to publish or no place for it.
    """
    spec, snapshot = folder.spec(), folder.snapshot()
    output = to or spec.output
    if output is None:
        raise UsageError(f"the job of {spec.run_id} names no output", hint="say where: --to FOLDER_OR_URL")
    if snapshot is None or snapshot.state.verdict is None:
        raise UsageError(f"{spec.run_id} is still running", hint="a run publishes its model itself when it ends")
    if not trained(folder, snapshot):
        raise UsageError(
            f"{spec.run_id} has not trained to its end: {snapshot.state.verdict.message}",
            hint=f"what it saved is in {folder.model(spec.deciding, spec.saves_to)}",
        )
    beat = snapshot.beats.get(spec.deciding)
    meta = {"job": spec.job_name, "run": spec.run_id, "task": spec.deciding, "progress": beat.progress if beat else {}}
    done = publish(folder.model(spec.deciding, spec.saves_to), output, spec.run_id, meta=meta)
    _note(folder, snapshot, {"ok": True, **asdict(done)})
    return done


def trained(folder: RunFolder, snapshot: Snapshot) -> bool:
    """Whether the task that decides has exited 0, so that there is a finished model."""
    member = snapshot.members.get(folder.spec().deciding)
    return bool(member and member.exit and member.exit.code == 0)


def waits_to_be_published(folder: RunFolder, snapshot: Snapshot) -> bool:
    """Whether this folder has the only copy of a finished model that the job wanted published."""
    published = snapshot.state.published
    return folder.spec().output is not None and trained(folder, snapshot) and not (published and published.get("ok"))


def _note(folder: RunFolder, snapshot: Snapshot, published: dict[str, Any]) -> None:
    state = replace(snapshot.state, published=published)
    if state.verdict and state.verdict.outcome == PUBLISH_FAILED:
        state = replace(state, verdict=Verdict(SUCCEEDED, "succeeded", task=state.verdict.task))
    folder.write_snapshot(replace(snapshot, state=state))
