"""``yurt stop``: end a run."""

from __future__ import annotations

import click

from yurt.cli.common import RUN
from yurt.cli.on_engine import ON, find
from yurt.cli.out import standard_output


@click.command()
@RUN
@ON
@click.option("--now", "at_once", is_flag=True, help="Without the grace time that the job's tasks have.")
def stop(run_id: str | None, engine: str | None, at_once: bool) -> int:
    """Stop a run, the newest unless RUN is named, and wait until nothing is left of it.

    RUN is an id, or the beginning of one. Its tasks get SIGTERM, and SIGKILL after the job's grace time.
    """
    from yurt.cli.summary import sentence
    from yurt.cli.watching import until_over
    from yurt.contract.state import CANCELLED
    from yurt.launcher.elsewhere import Elsewhere
    from yurt.launcher.host import ask_to_stop

    out = standard_output()
    folder = find(run_id, engine)
    spec = folder.spec()
    if isinstance(folder, Elsewhere):
        asked = folder.ask_to_stop(at_once=at_once, by="`yurt stop`")
    else:
        asked = ask_to_stop(folder, at_once=at_once, by="`yurt stop`")
    if asked and not at_once:
        on = f" --on {engine}" if engine else ""
        out.say(f"yurt: stopping {spec.run_id}; `yurt stop --now{on} {spec.run_id}` ends it at once")
    state = until_over(folder).state
    if isinstance(folder, Elsewhere):
        folder.tidy()
    assert state.verdict
    told = sentence(spec, state, state.verdict, colour=False)
    early = "" if asked and state.verdict.outcome == CANCELLED else "there was nothing to stop: "
    out.say(f"yurt: {early}{told}")
    return 0
