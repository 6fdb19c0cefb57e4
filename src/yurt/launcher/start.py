"""From a job to a run: an id, a folder, the job's files in it, and a host; here or in a process of its own."""

from __future__ import annotations

import json
import os
import secrets
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel

from yurt.contract.spec import RunSpec
from yurt.engines import registry
from yurt.engines.base import Engine
from yurt.engines.plan import plan
from yurt.errors import Cancelled, LauncherError, YurtError
from yurt.job import Job
from yurt.launcher import background
from yurt.launcher.files import snapshot
from yurt.launcher.home import home, runs
from yurt.launcher.records import RunFolder
from yurt.launcher.remote_host import RemoteHost
from yurt.launcher.serving import RunHost, make_host
from yurt.launcher.signals import stop_on_signals

_ALPHABET = "abcdefghijkmnpqrstuvwxyz23456789"  # none that look alike


def new_run_id(job_name: str) -> str:
    """``weather-k3f9qa``: a name that DNS, Nomad and Kubernetes take."""
    return f"{job_name}-{''.join(secrets.choice(_ALPHABET) for _ in range(6))}"


def engine_and_options(job: Job, name: str) -> tuple[Engine, BaseModel]:
    """The engine to run on, and its options as the job has them."""
    engine = registry.load(name)
    return engine(), engine.options.model_validate(job.engines.get(name, {}))


def prepare(job: Job, folder: Path, *, engine: str, job_file: Path | None) -> tuple[RunFolder, RunSpec]:
    """Make the run's folder with the job's files and its record. Raises YurtError and leaves nothing then."""
    spec = plan(job, new_run_id(job.name), time.time())
    run = RunFolder(runs() / spec.run_id)
    try:
        run.create()
        snapshot(folder, job.files, run.files, leave_out=not_travelling(job))
        run.write_record(spec, engine=engine, job_file=str(job_file) if job_file else None)
    except OSError as error:
        run.remove()
        raise LauncherError(f"the run could not be prepared in {run.path}: {error}") from error
    except BaseException:
        run.remove()
        raise
    return run, spec


def start_here(job: Job, folder: Path, *, engine: str, job_file: Path | None) -> RunHost:
    """A host in this process, its run submitted."""
    adapter, options = engine_and_options(job, engine)
    run, spec = prepare(job, folder, engine=engine, job_file=job_file)
    host = make_host(run, spec, adapter, options)
    host.start()
    return host


def start_detached(
    job: Job,
    folder: Path,
    *,
    engine: str,
    job_file: Path | None,
    tell: Callable[[str], object] = lambda _: None,
) -> RunFolder:
    """A host in a process of its own that no terminal holds; returns once its run is submitted.

    `tell` is told what that waits for. Raises YurtError; Cancelled after Ctrl-C, which ends what has begun.
    """
    engine_and_options(job, engine)
    run, spec = prepare(job, folder, engine=engine, job_file=job_file)
    order = {"run": run.run_id, "spec": spec.to_json(), "engine": engine, "options": job.engines.get(engine, {})}
    process = background.start("yurt.launcher.detached", run=run)
    assert process.stdin
    assert process.stdout
    with process.stdin as pipe:
        pipe.write(json.dumps(order, default=dict).encode())
    with process.stdout as answers:
        try:
            answer = _answer(answers, tell)
        except KeyboardInterrupt:
            process.send_signal(signal.SIGINT)
            answer = _answer(answers, tell)
            if not answer.get("ok"):
                run.remove()
            stopped = f"stopped by Ctrl-C while {run.run_id} was being submitted"
            raise Cancelled(answer.get("message", stopped)) from None
    if not answer.get("ok"):
        if answer:
            run.remove()  # it said why; without a word its log is kept
        message = answer.get("message", f"the run's launcher ended at once; see {run.launcher_log}")
        raise LauncherError(message, hint=answer.get("hint"))
    return run


def _answer(lines: IO[bytes], tell: Callable[[str], object]) -> dict[str, Any]:
    """The last word of `serve_detached`, after those on what it waits for; empty where it ended without one."""
    for line in lines:
        said: dict[str, Any] = json.loads(line)
        if "ok" in said:
            return said
        tell(said["waits"])
    return {}


def serve_detached() -> int:
    """The process that `start_detached` starts: reads its order from standard input, answers, serves."""
    order = json.loads(sys.stdin.read())
    try:
        engine = registry.load(order["engine"])
        host = make_host(
            RunFolder(runs() / order["run"]),
            RunSpec.from_json(order["spec"]),
            engine(),
            engine.options.model_validate(order["options"]),
        )
        if isinstance(host, RemoteHost):
            host.tell = lambda text: print(json.dumps({"waits": text}), flush=True)
        stop_on_signals(host, on_hangup=None)
        host.start()
    except YurtError as error:
        print(json.dumps({"ok": False, "message": str(error), "hint": error.hint}), flush=True)
        return error.exit_code
    print(json.dumps({"ok": True}), flush=True)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    verdict = host.serve(lambda _: None).state.verdict
    return verdict.exit_code if verdict else 6


def not_travelling(job: Job) -> list[Path]:
    """Folders that do not travel with the job: where runs are kept, and where it publishes to if that is a folder."""
    if job.output and job.output.startswith("file:"):
        return [home(), Path(unquote(urlsplit(job.output).path))]
    return [home()]
