"""Runs a job from Python."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from yurt.contract.state import Verdict
from yurt.errors import LauncherError
from yurt.job import Job
from yurt.launcher.records import Snapshot
from yurt.launcher.start import start_here


def run(
    job: Job,
    *,
    folder: str | Path = ".",
    on: str = "local",
    on_look: Callable[[Snapshot], None] = lambda _: None,
) -> Verdict:
    """Run a job to its end and return its verdict; a job that fails is a verdict, not an exception.

    `folder` is what a job file's folder would be: the job's files and a relative output are below it. `on` names the
    engine. `on_look` is called with the run's state several times a second. Raises `yurt.errors.YurtError` where the
    run could not be submitted. KeyboardInterrupt ends the run at once and is raised.
    """
    place = Path(folder).absolute()
    host = start_here(job.in_folder(place), place, engine=on, job_file=None)
    verdict = host.serve(on_look).state.verdict
    if verdict is None:
        raise LauncherError(f"the run {host.spec.run_id} ended without a verdict")
    return verdict
