"""How the command line says that something went wrong: one sentence and what would be right, never a traceback."""

from __future__ import annotations

import os
import sys

import click

from yurt.errors import JobError, YurtError


def say(error: YurtError) -> int:
    """Tell an error of ours; its exit code. The problems of a job stand one a line, as a compiler's do."""
    if isinstance(error, JobError):
        _tell("\n".join(str(problem) for problem in error.problems))
    else:
        _tell(f"yurt: {error}" + (f"\n      {error.hint}" if error.hint else ""))
    return error.exit_code


def say_usage(error: click.ClickException) -> int:
    """Tell a mistake on the command line, in one sentence and where to read more."""
    message = error.format_message().strip().rstrip(".")
    ctx = getattr(error, "ctx", None)
    path = ctx.command_path if ctx else "yurt"
    _tell(f"yurt: {message[:1].lower()}{message[1:]}\n      `{path} --help` shows what there is")
    return 2


def say_internal(error: Exception) -> int:
    """Tell a fault of ours, and keep the traceback in a file."""
    import traceback

    text = "".join(traceback.format_exception(error))
    first = f"{type(error).__name__}: {error}".splitlines()[0]
    _tell(f"yurt: internal error: {first} (this is a fault in Yurt; details: {_keep(text)})")
    return 6


def leave_quietly() -> None:
    """Give Python nothing to stumble over when it closes standard output, whose reader may be gone."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)


def _tell(text: str) -> None:
    try:
        print(text, file=sys.stderr, flush=True)
    except (OSError, ValueError):
        pass  # nobody reads it


def _keep(text: str) -> str:
    import tempfile
    import time
    from pathlib import Path

    name = f"error-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.txt"
    try:
        from yurt.launcher.home import home

        folder = home() / "errors"
        folder.mkdir(exist_ok=True)
    except (YurtError, OSError):
        folder = Path(tempfile.gettempdir())
    path = folder / name
    try:
        path.write_text(text, encoding="utf-8")
    except OSError:
        return "they could not be written"
    return str(path)
