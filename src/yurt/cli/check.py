"""``yurt check``: whether a job could start."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yurt.cli import words
from yurt.cli.as_json import as_page
from yurt.cli.common import ENGINE, JOB_FILE, JSON
from yurt.cli.out import standard_error, standard_output
from yurt.cli.tfjob_file import Choices, tfjob_options

if TYPE_CHECKING:
    from yurt.launcher.check import Checked, CheckedRole


@click.command()
@JOB_FILE
@ENGINE
@JSON
@tfjob_options
def check(job_file: Path, engine: str, as_json: bool, choices: Choices) -> int:
    """Look whether a job could start, without starting it.

    Reads the file, looks at Python, TensorFlow and Keras as the tasks would find them, and tries to write where the
    model goes. The exit code is 0, or 2 if something stands against a start.
    """
    from yurt.cli.common import load
    from yurt.launcher.check import check as look

    loaded = load(job_file, engine=engine, choices=choices)
    found = look(loaded.job, loaded.folder, engine=engine)
    if as_json:
        standard_output().say(as_page(_facts(found)))
    else:
        standard_output().say("\n".join(_page(found)))
        for sentence, hint in _problems(found):
            standard_error().say(f"yurt: {sentence}" + (f"\n      {hint}" if hint else ""))
    return 0 if found.ok else 2


def _facts(found: Checked) -> dict[str, Any]:
    spec = found.spec
    return {
        "ok": found.ok,
        "job": spec.job_name,
        "engine": found.engine,
        "strategy": spec.strategy,
        "files": found.files,
        "roles": [asdict(role) for role in found.roles],
        "output": {"url": spec.output, "problem": found.output_problem, "hint": found.output_hint},
        "notes": list(found.notes),
    }


def _problems(found: Checked) -> Iterator[tuple[str, str | None]]:
    for role in found.roles:
        if role.problem:
            yield f"{role.role}: {role.problem}", role.hint
    if found.output_problem:
        yield f"output: {found.output_problem}", found.output_hint


def _page(found: Checked) -> Iterator[str]:
    from yurt.cli.table import table

    spec = found.spec
    where = "on this machine" if found.here else f"on {found.engine}"
    can = "can start" if found.ok else "cannot start"
    yield f"{spec.job_name} {can} {where}: {words.counted(len(spec.tasks), 'task')}, strategy {spec.strategy}"
    head = ("ROLE", "TASKS", "CPUS", "PYTHON", "TENSORFLOW", "KERAS", "COMMAND")
    yield table([head, *(_row(role) for role in found.roles)])
    yield f"{words.counted(found.files, 'file')} would travel with it"
    if spec.output and not found.output_problem:
        yield f"the model would go to {words.output(spec.output)}, which can be written"
    elif not spec.output:
        yield "nothing would be published: the job names no output"
    if not found.looked:
        yield "what its tasks find there is looked at when they start"
    yield from dict.fromkeys([*found.notes, *(note for role in found.roles for note in role.notes)])


def _row(role: CheckedRole) -> tuple[str, ...]:
    command = "TensorFlow's standard server" if role.command is None else shlex.join(role.command)
    cpus = "shared" if role.cpus is None else f"{role.cpus} each"
    known = role.found
    versions = (str(known.get(name) or "none") if known else "-" for name in ("python", "tensorflow", "keras"))
    return (role.role, str(role.replicas), cpus, *versions, command)
