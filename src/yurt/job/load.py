"""From a job file to a job, or to all of its mistakes at once."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from yurt.errors import JobError, Problem
from yurt.job import places
from yurt.job.findings import Finding
from yurt.job.model import Job
from yurt.job.positions import Positions, Reading
from yurt.job.schema import NO_ENGINES
from yurt.job.written import bare, found

if TYPE_CHECKING:
    import os

    from pydantic import BaseModel

LARGEST_FILE = 1024**2
"""1 MiB, in bytes: a job file has a dozen lines."""


@dataclass(frozen=True, slots=True)
class LoadedJob:
    """A job and where its file lies; `path` and `folder` are absolute."""

    job: Job
    path: Path
    folder: Path


def load_job(path: str | os.PathLike[str], *, engine_options: Mapping[str, type[BaseModel]] = NO_ENGINES) -> LoadedJob:
    """Read a job file; a relative `output` becomes a ``file://`` URL beside the file.

    Args:
        path: the file, in YAML and UTF-8.
        engine_options: the pydantic model of each engine's options, by the engine's name. Without
            any, every engine name is taken with any options.

    Raises:
        yurt.errors.JobError: with all problems of the file, in its order, each with line and column.
    """
    file = str(path)
    text = _text(file)
    from yurt.job.yaml_tree import SMALLEST_JOB, NotYamlError, Tree

    try:
        tree = Tree(text)
    except NotYamlError as error:
        raise JobError(Reading(Positions(file, {})).problems([error.finding])) from None
    reading = Reading(Positions(file, tree.places), engine_options)
    if not isinstance(tree.data, dict):
        message = "is empty" if bare(tree.data) is None else f"must be a mapping of keys, not {found(tree.data)}"
        raise JobError(reading.problems([*tree.findings, Finding((), message, SMALLEST_JOB)]))

    where = Path(file).absolute()
    findings = [*tree.findings, *_missing_files(tree.data, where.parent)]
    problems: list[Problem] = []
    job = None
    try:
        job = Job.model_validate(tree.data, context=reading)
    except JobError as error:
        problems = error.problems
    problems += reading.problems(findings)
    if job is None or problems:
        raise JobError(sorted(problems, key=lambda one: (one.line or 0, one.column or 0)))
    return LoadedJob(job.in_folder(where.parent), where, where.parent)


def _text(file: str) -> str:
    """The text of the file. Raises `JobError` in one sentence where it cannot be had."""
    path = Path(file)
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST_FILE + 1)
    except IsADirectoryError:
        inside = path / "job.yaml"
        hint = f"did you mean {inside}?" if inside.is_file() else "name the job file in it"
        _refuse(file, "is a folder, not a job file", hint)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        _refuse(file, "does not exist", _neighbour(path))
    except OSError as error:
        _refuse(file, f"cannot be read: {(error.strerror or str(error)).lower()}")
    if len(data) > LARGEST_FILE:
        _refuse(file, "is larger than 1 MiB, which no job file is")
    try:
        return data.removeprefix(codecs.BOM_UTF8).decode()
    except UnicodeDecodeError as error:
        before = data[: error.start]
        place = (before.count(b"\n") + 1, len(before) - before.rfind(b"\n"))
        _refuse(file, "is not UTF-8 text", "save it as UTF-8", place)


def _neighbour(path: Path) -> str | None:
    from yurt.job.findings import did_you_mean

    try:
        names = [one.name for one in path.absolute().parent.iterdir() if one.suffix in (".yaml", ".yml")]
    except (OSError, ValueError):
        return None
    return did_you_mean(path.name, sorted(names)) if names else None


def _refuse(
    file: str, message: str, hint: str | None = None, place: tuple[int, int] | tuple[None, None] = (None, None)
) -> NoReturn:
    shown = "".join(c if c.isprintable() else "?" for c in file)
    raise JobError([Problem("", message, hint, shown, *place)]) from None


def _missing_files(job: dict[str, Any], folder: Path) -> list[Finding]:
    """A finding for each path or pattern of `files` that names nothing."""
    files = job.get("files", [])
    findings = []
    for index, raw in enumerate(files if isinstance(files, list) else []):
        try:
            pattern = places.read_travelling(raw)
        except ValueError:
            continue  # the field says what is wrong with it
        if message := places.nothing_at(pattern, folder):
            findings.append(Finding(("files", index), message))
    return findings
