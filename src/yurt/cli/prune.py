"""``yurt prune``: remove what is kept of ended runs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from yurt.cli import words
from yurt.cli.on_engine import ON
from yurt.cli.out import standard_output
from yurt.errors import EngineError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from yurt.launcher.records import RunFolder


@click.command()
@click.option("--older-than", default="7d", metavar="AGE", help="Runs that ended longer ago; 7d unless said.")
@click.option("--all", "every", is_flag=True, help="However lately they ended.")
@click.option("--force", is_flag=True, help="Also those that hold the only copy of a model that was not published.")
@ON
@click.option("--dry-run", is_flag=True, help="Only say what would be removed.")
def prune(older_than: str, every: bool, force: bool, engine: str | None, dry_run: bool) -> None:
    """Remove the folders of ended runs: logs, checkpoints and models in them.

    Published models stay. A run that has not ended is never removed. With --on it is what Consul keeps of ended runs,
    whichever machine submitted them; no folder is touched then.
    """
    from yurt.launcher.records import all_runs

    out = standard_output()
    before = time.time() - (0.0 if every else _seconds(older_than))
    if engine is not None:
        _prune_cluster(engine, before, dry_run=dry_run)
        return
    count, freed = 0, 0
    for folder in all_runs():
        if not _old(folder, before):
            if _unheard_of(folder, before):
                out.say(
                    f"kept     {folder.run_id}: it had not ended when its cluster was last heard of "
                    f"(yurt stop --now {folder.run_id} lets it go)"
                )
            continue
        if not force and _precious(folder):
            out.say(
                f"kept     {folder.run_id}: its model is not published yet (yurt publish {folder.run_id}, or --force)"
            )
            continue
        size = _size(folder.path)
        if not dry_run:
            folder.remove()
        out.say(f"{'would go' if dry_run else 'removed'}  {folder.run_id}  {words.size(size)}")
        count, freed = count + 1, freed + size
    for name in _leftovers(dry_run):
        out.say(f"{'would go' if dry_run else 'removed'}  {name}")
    out.say(f"{words.counted(count, 'run')}, {words.size(freed)}{' would be freed' if dry_run else ' freed'}")


def _prune_cluster(engine: str, before: float, *, dry_run: bool) -> None:
    from yurt.launcher.elsewhere import forget_ended

    out = standard_output()
    gone = forget_ended(engine, before, dry_run=dry_run)
    for run_id in gone:
        out.say(f"{'would go' if dry_run else 'removed'}  {run_id}")
    out.say(f"{words.counted(len(gone), 'run')} of {engine}{' would be removed' if dry_run else ' removed'}")


def _leftovers(dry_run: bool) -> list[str]:
    """What killed launchers left on engines that are there."""
    from yurt.engines import registry
    from yurt.engines.base import Cleans

    found: list[str] = []
    for name in registry.names():
        try:
            engine = registry.load(name)()
            found += engine.leftovers(remove=not dry_run) if isinstance(engine, Cleans) else []
        except EngineError:
            continue  # nothing is there that could hold anything
    return found


def _seconds(text: str) -> float:
    from yurt.job.units import read_duration

    try:
        return read_duration(text, zero=True)
    except Exception as error:  # the job's reader raises pydantic's kind, whose text speaks of fields
        raise UsageError(f"--older-than {text!r} is no age", hint="write it as 7d, 12h or 30m") from error


def _old(folder: RunFolder, before: float) -> bool:
    """Whether the run is over, nobody serves it, and it ended before this time."""
    from yurt.cli.watching import over

    snapshot = folder.snapshot()
    if snapshot is None:  # its launcher has only begun, or was killed as it did
        return folder.host() is None and folder.path.stat().st_mtime < min(before, time.time() - 60)
    return over(folder, snapshot) and snapshot.state.since <= before


def _unheard_of(folder: RunFolder, before: float) -> bool:
    """Whether it lives on a cluster, nobody looks after it, and nothing was heard of it since then."""
    if folder.remote() is None or folder.host() is not None:
        return False
    return (folder.path / "state.json").stat().st_mtime <= before


def _precious(folder: RunFolder) -> bool:
    from yurt.launcher.republish import waits_to_be_published

    snapshot = folder.snapshot()
    return snapshot is not None and waits_to_be_published(folder, snapshot)


def _size(path: Path) -> int:
    return sum(file.lstat().st_size for file in path.rglob("*") if file.is_file() and not file.is_symlink())
