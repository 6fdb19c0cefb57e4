"""``yurt stop``: end a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from yurt.cli.common import RUN
from yurt.cli.on_engine import ON, find
from yurt.cli.out import standard_error, standard_output
from yurt.errors import LauncherError, RunNotFound, StoreError

if TYPE_CHECKING:
    from yurt.launcher.records import RunFolder

_BY = "`yurt stop`"


@click.command()
@RUN
@ON
@click.option(
    "--now",
    "at_once",
    is_flag=True,
    help="Without the grace time that the job's tasks have; a run whose cluster does not answer is let go.",
)
def stop(run_id: str | None, engine: str | None, at_once: bool) -> int:
    """Stop a run, the newest unless RUN is named, and wait until nothing is left of it.

    RUN is an id, or the beginning of one. Its tasks get SIGTERM, and SIGKILL after the job's grace time.
    """
    from yurt.cli.summary import sentence
    from yurt.cli.watching import until_over
    from yurt.contract.state import CANCELLED

    out = standard_output()
    folder = _find(run_id, engine, at_once=at_once)
    spec = folder.spec()
    asked = _ask(folder, at_once=at_once)
    if asked and not at_once:
        on = f" --on {engine}" if engine else ""
        out.say(f"yurt: stopping {spec.run_id}; `yurt stop --now{on} {spec.run_id}` ends it at once")
    left = _let_go(folder) if at_once else []
    state = until_over(folder).state
    left += _tidy(folder, at_once=at_once)
    assert state.verdict
    told = sentence(spec, state, state.verdict, colour=False)
    early = "" if asked and state.verdict.outcome == CANCELLED else "there was nothing to stop: "
    out.say(f"yurt: {early}{told}")
    if not left:
        return 0
    on = folder.record()["engine"]
    standard_error().say(
        f"yurt: {spec.run_id} is let go: {'; '.join(left)}\n"
        f"      if the cluster comes back: yurt stop --on {on} {spec.run_id}"
    )
    return LauncherError.exit_code


def _find(run_id: str | None, engine: str | None, *, at_once: bool) -> RunFolder:
    if at_once:  # one whose cluster does not answer is found all the same
        return find(run_id, engine, otherwise=lambda _: None)
    try:
        return find(run_id, engine)
    except (RunNotFound, StoreError):
        raise
    except LauncherError as error:
        hint = "`yurt stop --now` lets the run go, if its cluster is gone for good"
        raise LauncherError(str(error), hint=f"{error.hint}\n      {hint}" if error.hint else hint) from error


def _ask(folder: RunFolder, *, at_once: bool) -> bool:
    """Whether there was anything to stop."""
    from yurt.launcher.elsewhere import Elsewhere
    from yurt.launcher.host import ask_to_stop

    if isinstance(folder, Elsewhere):
        return folder.ask_to_stop(at_once=at_once, by=_BY)
    if folder.remote() is not None and at_once:
        folder.ask_to_let_go(_BY)  # heeded only where the cluster does not answer
    try:
        return ask_to_stop(folder, at_once=at_once, by=_BY) or folder.remote() is not None
    except StoreError as error:
        if folder.remote() is None or not error.retryable:
            raise
        if not at_once:
            hint = f"`yurt stop --now {folder.run_id}` lets it go, if its cluster is gone for good"
            raise type(error)(str(error), hint=hint) from error
        return True


def _let_go(folder: RunFolder) -> list[str]:
    """What could not be ended of a run of this machine whose cluster does not answer."""
    import time

    from yurt.launcher import attaching

    while folder.host() is not None:
        time.sleep(0.1)
    return attaching.let_go(folder, by=_BY) if folder.remote() is not None else []


def _tidy(folder: RunFolder, *, at_once: bool) -> list[str]:
    from yurt.launcher.elsewhere import Elsewhere

    return folder.tidy(let_go=at_once) if isinstance(folder, Elsewhere) else []
