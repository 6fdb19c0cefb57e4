"""The option `--on` of the verbs that look at runs: those of a cluster, from any machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import click

from yurt.cli.completing import complete_engine

if TYPE_CHECKING:
    from yurt.launcher.records import RunFolder

ON: Final = click.option(
    "--on",
    "engine",
    metavar="ENGINE",
    shell_complete=complete_engine,
    help="Runs on this cluster, whichever machine submitted them: nomad. Unless said, the runs of this machine.",
)


def find(run_id: str | None, engine: str | None, *, otherwise: Callable[[str], object] | None = None) -> RunFolder:
    """The run that a verb is about; what is fetched for it is gone when the verb ends. Raises YurtError."""
    from yurt.launcher import attaching, elsewhere

    if engine is None:
        return attaching.find(run_id, otherwise=otherwise)
    folder = elsewhere.find(run_id, engine, otherwise=otherwise)
    if isinstance(folder, elsewhere.Elsewhere):
        click.get_current_context().call_on_close(folder.leave)
    return folder
