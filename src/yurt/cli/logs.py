"""``yurt logs``: what the tasks of a run print."""

from __future__ import annotations

import click

from yurt.cli.common import RUN, TASK
from yurt.cli.on_engine import ON, find
from yurt.cli.out import standard_error, standard_output


@click.command()
@RUN
@TASK
@ON
@click.option("-f", "--follow", is_flag=True, help="Go on until the run is over; the exit code is then the run's.")
@click.option("--since", metavar="TIME", help="Only what came since: 5m ago, 14:30, 2026-01-31T14:30 or a Unix time.")
@click.option("--tail", type=click.IntRange(0), metavar="N", help="Only the last N lines of each task.")
@click.option("--no-color", is_flag=True, help="No colours (as the variable NO_COLOR).")
def logs(
    run_id: str | None,
    task: str | None,
    engine: str | None,
    follow: bool,
    since: str | None,
    tail: int | None,
    no_color: bool,
) -> int:
    """Show what the tasks of a run have printed, each line with its task.

    RUN is an id, or the beginning of one; without it, the newest run. TASK is written worker/0; without it, all.
    """
    from yurt.cli.following import Reading, follow_to_end
    from yurt.cli.marks import Marks, colour_wanted
    from yurt.cli.moments import moment
    from yurt.cli.stored_logs import StoredLog
    from yurt.errors import UsageError
    from yurt.launcher.elsewhere import Elsewhere

    out = standard_output()
    folder = find(run_id, engine, otherwise=None if follow else standard_error().say)
    names = [each.name for each in folder.spec().tasks]
    if task is not None and task not in names:
        raise UsageError(f"{folder.run_id} has no task {task!r}", hint=f"it has {', '.join(names)}")
    if isinstance(folder, Elsewhere):
        if since is not None:
            raise UsageError(
                f"--since: {folder.run_id} was submitted elsewhere, and {engine} does not tell when a line was printed",
                hint="--tail N shows the last lines",
            )
        if problem := folder.open_logs():
            standard_error().say(f"yurt: {problem}")
    from_time = None if since is None else moment(since)
    wanted = [task] if task else names
    stored = {name: StoredLog(folder.log(name)) for name in wanted}
    starts = {name: log.start(since=from_time, tail=tail) for name, log in stored.items()}
    marks = Marks(names, colour=colour_wanted(out, no_color=no_color))
    reading = Reading(stored, starts, marks, out)
    reading.in_order_of_time()
    if follow:
        return follow_to_end(folder, reading, out)
    reading.end()
    return 0
