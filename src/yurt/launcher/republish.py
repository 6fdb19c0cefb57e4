"""Publishes the model of a run that has trained: after a failed publish, again, or elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

from yurt.contract.spec import RunSpec
from yurt.contract.state import PUBLISH_FAILED, SUCCEEDED, Verdict
from yurt.engines import registry
from yurt.engines.base import Adopts, Fetches, StoreAt
from yurt.errors import StoreError, UsageError
from yurt.kv.run_index import RunIndex
from yurt.kv.run_store import RunStore
from yurt.launcher.consul import open_store
from yurt.launcher.kept import correct
from yurt.launcher.records import RunFolder, Snapshot
from yurt.storage.publish import Published, publish


def republish(folder: RunFolder, to: str | None, tell: Callable[[str], object]) -> Published:
    """Publish, and note it in the run's record, and in the store where others see the run; `tell` is told if not there.

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
            hint=_saved(folder, spec),
        )
    beat = snapshot.beats.get(spec.deciding)
    meta = {"job": spec.job_name, "run": spec.run_id, "task": spec.deciding, "progress": beat.progress if beat else {}}
    done = publish(_model(folder, spec), output, spec.run_id, meta=meta)
    noted = _note(folder, snapshot, {"ok": True, **asdict(done)})
    if registry.load(folder.record()["engine"]).capabilities.store is StoreAt.CONSUL:
        _note_for_others(spec, noted, tell)
    _remove_what_was_held(folder)
    return done


def _remove_what_was_held(folder: RunFolder) -> None:
    """A cluster that kept nothing but the model need not do so any more."""
    handle, kind = folder.handle(), registry.load(folder.record()["engine"])
    if handle is not None and kind.capabilities.store is StoreAt.AGENT:
        engine = kind()
        cast("Adopts", engine).adopt(handle)
        engine.cancel()
        folder.forget_handle()


def _model(folder: RunFolder, spec: RunSpec) -> Path:
    """The model's folder on this machine; where a cluster has it, it is fetched into the run's folder first."""
    place = folder.model(spec.deciding, spec.saves_to)
    handle = folder.handle()
    if handle is None or (place.is_dir() and any(place.iterdir())):
        return place
    engine = registry.load(folder.record()["engine"])()
    if isinstance(engine, Fetches) and isinstance(engine, Adopts):
        engine.adopt(handle)
        engine.fetch_model(spec.deciding, spec.saves_to, place)
    return place


def _saved(folder: RunFolder, spec: RunSpec) -> str | None:
    """Where what a run has saved is, if it is on this machine."""
    place = folder.model(spec.deciding, spec.saves_to)
    return f"what it saved is in {place}" if place.exists() else None


def trained(folder: RunFolder, snapshot: Snapshot) -> bool:
    """Whether the task that decides has exited 0, so that there is a finished model."""
    member = snapshot.members.get(folder.spec().deciding)
    return bool(member and member.exit and member.exit.code == 0)


def waits_to_be_published(folder: RunFolder, snapshot: Snapshot) -> bool:
    """Whether this folder has the only copy of a finished model that the job wanted published."""
    published = snapshot.state.published
    return folder.spec().output is not None and trained(folder, snapshot) and not (published and published.get("ok"))


def _note(folder: RunFolder, snapshot: Snapshot, published: dict[str, Any]) -> Snapshot:
    state = replace(snapshot.state, published=published)
    if state.verdict and state.verdict.outcome == PUBLISH_FAILED:
        state = replace(state, verdict=Verdict(SUCCEEDED, "succeeded", task=state.verdict.task))
    noted = replace(snapshot, state=state)
    folder.write_snapshot(noted)
    return noted


def _note_for_others(spec: RunSpec, snapshot: Snapshot, tell: Callable[[str], object]) -> None:
    try:
        with open_store() as store:
            correct(RunStore(store, spec), RunIndex(store), snapshot)
    except StoreError as error:
        tell(f"yurt: the model is published, but others could not be told: {error}")
