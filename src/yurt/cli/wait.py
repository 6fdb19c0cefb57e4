"""``yurt wait``: until the end of a run."""

from __future__ import annotations

import click

from yurt.cli.as_json import as_line
from yurt.cli.common import JSON, RUN
from yurt.cli.on_engine import ON, find
from yurt.cli.out import standard_output


@click.command()
@RUN
@ON
@JSON
def wait(run_id: str | None, engine: str | None, as_json: bool) -> int:
    """Wait for the end of a run, the newest unless RUN is named; the exit code is the run's.

    RUN is an id, or the beginning of one. Ctrl-C ends the waiting, not the run.
    """
    from yurt.cli.facts import facts
    from yurt.cli.marks import colour_wanted
    from yurt.cli.summary import summary
    from yurt.cli.watching import until_over

    out = standard_output()
    folder = find(run_id, engine)
    snapshot = until_over(folder)
    if as_json:
        out.say(as_line(facts(folder, snapshot)))
    else:
        out.say(summary(folder.spec(), snapshot, folder, colour=colour_wanted(out, no_color=False)))
    assert snapshot.state.verdict
    return snapshot.state.verdict.exit_code
