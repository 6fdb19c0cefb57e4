"""What the shell completes: runs and tasks from the records, engines from those registered."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from yurt.errors import YurtError


def complete_run(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Ids of runs, the newest first."""
    from yurt.launcher.records import all_runs

    try:
        return [CompletionItem(run.run_id) for run in all_runs() if run.run_id.startswith(incomplete)]
    except (YurtError, OSError):
        return []


def complete_task(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The tasks of the run that is named before."""
    from yurt.launcher.records import find

    try:
        tasks = find(ctx.params.get("run_id")).spec().tasks
    except (YurtError, OSError):
        return []
    return [CompletionItem(task.name) for task in tasks if task.name.startswith(incomplete)]


def complete_engine(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The engines there are."""
    from yurt.engines.registry import names

    return [CompletionItem(name) for name in names() if name.startswith(incomplete)]
