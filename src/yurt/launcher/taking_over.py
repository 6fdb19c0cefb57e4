"""A run that another machine has submitted to a cluster that keeps its runs itself: found there, and remembered here.

From then on it is a run of this machine like any other, but for its end: what is left of it in the cluster is not ours
to remove.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from yurt.engines import registry
from yurt.engines.base import Adopts, Keeps
from yurt.errors import RunNotFound
from yurt.kv.run_index import Entry
from yurt.launcher import attaching
from yurt.launcher.home import runs
from yurt.launcher.records import RunFolder, all_runs


def find(name: str | None, engine: str, *, otherwise: Callable[[str], object] | None = None) -> RunFolder:
    """The run with this id, or the only one whose id begins so; None is the newest.

    Raises RunNotFound; what `yurt.launcher.attaching.find` raises.
    """
    entry = _named(name, runs_on(engine), engine)
    known = {folder.run_id for folder in all_runs()}
    if entry.run_id not in known:
        adapter = registry.load(engine)()
        assert isinstance(adapter, Keeps)
        assert isinstance(adapter, Adopts)
        spec = adapter.take_over(entry.run_id)
        folder = RunFolder(runs() / entry.run_id)
        folder.create()
        try:
            folder.write_record(spec, engine=engine, job_file=None)
            folder.write_remote({"store": "", "engine": adapter.handle(), "submitted": True})
        except BaseException:
            folder.remove()
            raise
    return attaching.find(entry.run_id, otherwise=otherwise)


def runs_on(engine: str) -> list[Entry]:
    """All runs of the engine, the newest first. Raises EngineError."""
    return cast("Keeps", registry.load(engine)()).runs()


def forget_ended(engine: str, before: float, *, dry_run: bool) -> list[str]:
    """Remove from the cluster what is left of runs that ended before this Unix time; their ids. Raises EngineError."""
    adapter = cast("Keeps", registry.load(engine)())
    gone = [entry.run_id for entry in adapter.runs() if entry.ended_at is not None and entry.ended_at <= before]
    for run_id in () if dry_run else gone:
        adapter.forget(run_id)
    return gone


def _named(name: str | None, entries: list[Entry], engine: str) -> Entry:
    hint = f"`yurt ls --on {engine}` shows the runs there are"
    if name is None:
        if not entries:
            raise RunNotFound(f"there are no runs on {engine}", hint=f"`yurt run job.yaml --on {engine}` starts one")
        return entries[0]
    exact = [entry for entry in entries if entry.run_id == name]
    matching = exact or [entry for entry in entries if entry.run_id.startswith(name)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        few = ", ".join(entry.run_id for entry in matching[:4])
        raise RunNotFound(f"{name!r} could be several runs: {few}", hint="write more of the id")
    raise RunNotFound(f"{engine} knows of no run {name!r}", hint=hint)
