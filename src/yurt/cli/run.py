"""``yurt run``: train a job and show it, or leave it in the background."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yurt.cli import failing
from yurt.cli.as_json import as_line
from yurt.cli.common import ENGINE, JOB_FILE
from yurt.cli.marks import Marks, colour_wanted, own_line
from yurt.cli.out import Out, standard_error, standard_output
from yurt.cli.tfjob_file import Choices, tfjob_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from yurt.cli.show import View
    from yurt.job import LoadedJob
    from yurt.launcher.records import Snapshot
    from yurt.launcher.serving import RunHost


@dataclass(frozen=True, slots=True)
class _Way:
    """How to show a run: where to, whether in colours, and whether its result follows as JSON."""

    out: Out
    colour: bool
    as_json: bool


@click.command()
@JOB_FILE
@ENGINE
@click.option("-d", "--detach", is_flag=True, help="Leave it in the background and return.")
@click.option(
    "--env",
    "variables",
    multiple=True,
    metavar="NAME=VALUE",
    help="An environment variable of all tasks; NAME alone takes its value from here. Can be given several times.",
)
@click.option("--no-color", is_flag=True, help="No colours (as the variable NO_COLOR).")
@click.option(
    "--json", "as_json", is_flag=True, help="Print the result as one line of JSON; the rest to standard error."
)
@tfjob_options
def run(
    job_file: Path,
    engine: str,
    detach: bool,
    variables: tuple[str, ...],
    no_color: bool,
    as_json: bool,
    choices: Choices,
) -> int:
    """Train a job and show it. A TFJob's file is taken as it is.

    Ctrl-C stops the run, a second one at once. The exit code is the run's: 0 only if it succeeded.
    """
    from yurt.cli.common import load

    loaded = load(job_file, variables, engine=engine, choices=choices)
    out = standard_error() if as_json else standard_output()
    way = _Way(out, colour_wanted(out, no_color=no_color), as_json)
    return _leave(loaded, engine, way) if detach else _stay(loaded, engine, way)


def _leave(loaded: LoadedJob, engine: str, way: _Way) -> int:
    from yurt.launcher.start import start_detached

    folder = start_detached(loaded.job, loaded.folder, engine=engine, job_file=loaded.path, tell=standard_error().say)
    if way.as_json:
        standard_output().say(as_line({"run": folder.run_id}))
    else:
        way.out.say(
            f"yurt: run {folder.run_id} goes on in the background\n"
            f"      yurt logs -f {folder.run_id}   its lines, to its end\n"
            f"      yurt stop {folder.run_id}      end it"
        )
    return 0


def _stay(loaded: LoadedJob, engine: str, way: _Way) -> int:
    from yurt.cli.news import beginning
    from yurt.cli.summary import summary
    from yurt.launcher.serving import make_host
    from yurt.launcher.signals import stop_on_signals
    from yurt.launcher.start import engine_and_options, prepare

    adapter, options = engine_and_options(loaded.job, engine)
    folder, spec = prepare(loaded.job, loaded.folder, engine=engine, job_file=loaded.path)
    host = make_host(folder, spec, adapter, options)
    stop_on_signals(host, on_hangup=lambda: setattr(way.out, "gone", True))
    try:
        host.start()
    except BaseException:
        folder.remove()
        raise
    way.out.say(own_line(beginning(spec, _where(host)), colour=way.colour))
    told = list(host.notes)
    for note in told:
        way.out.say(own_line(note, colour=way.colour))
    snapshot = _serve(host, way)
    for note in host.notes[len(told) :]:
        way.out.say(own_line(note, colour=way.colour))
    way.out.say(summary(spec, snapshot, folder, colour=way.colour))
    if way.as_json:
        from yurt.cli.facts import facts

        standard_output().say(as_line(facts(folder)))
    verdict = snapshot.state.verdict
    return verdict.exit_code if verdict else 6


def _serve(host: RunHost, way: _Way) -> Snapshot:
    from yurt.cli.show import Plain, Show

    marks = Marks((task.name for task in host.spec.tasks), colour=way.colour)
    live = way.out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    view: Callable[[], View] = partial(_live, host, way, marks) if live else partial(Plain, way.out)
    show = Show(host.spec, host.snapshot, host.logs, view, marks)
    show.start()
    snapshot = host.serve(show.look)
    verdict = snapshot.state.verdict
    # The run is over: from here on Ctrl-C is only about a reader that does not read.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: os._exit(verdict.exit_code if verdict else 6))
    try:
        show.finish()
    except Exception as error:  # a fault of ours in showing the run is none of the run
        failing.say_internal(error)
    return snapshot


def _live(host: RunHost, way: _Way, marks: Marks) -> View:
    from yurt.cli.live import Live

    return Live(host.spec, way.out, marks, colour=way.colour)


def _where(host: RunHost) -> str:
    able = host.engine.capabilities
    return f"on {host.engine.name}" if able.machines or able.images else "on this machine"
