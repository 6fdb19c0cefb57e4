"""The formats there are, and which one a text is in.

A new format is one module with `read` and, where it can be written, `write`; and one line in each table here.
"""

from __future__ import annotations

import importlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from yurt.convert.converted import Converted, Written
from yurt.convert.source import Source
from yurt.errors import UsageError
from yurt.job import Job

NOMAD: Final = "nomad"
YURT: Final = "yurt"
TFJOB: Final = "tfjob"

#: The module of each format that can be read: ``read(sources, **options) -> Converted``.
READERS: Final = {NOMAD: "yurt.convert.nomad.reading", TFJOB: "yurt.convert.tfjob.reading"}
#: The module of each format that can be written: ``write(job, **options) -> Written``.
WRITERS: Final = {NOMAD: "yurt.convert.nomad.writing", TFJOB: "yurt.convert.tfjob.writing"}

_HCL_JOB = re.compile(r"^[ \t]*job[ \t]+(\"|[A-Za-z_])|^[ \t]*job[ \t]*\{", re.MULTILINE)
#: A manifest of Kubernetes, templates of one included; what kind it is, its reader finds out.
_MANIFEST = re.compile(
    r"^(?:- )?[\"']?(apiVersion|kind)[\"']?[ \t]*:|^[ \t]+apiVersion:(?s:.*)^[ \t]+kind:", re.MULTILINE
)
_JSONNET = re.compile(r"kind:[ \t]*[\"']T[fF]Job[\"'],?[ \t]*$", re.MULTILINE)
_YURT_KEY = re.compile(r"^(name|command|roles|strategy):", re.MULTILINE)


def read_jobs(sources: Sequence[Source], **options: Any) -> Converted:
    """One job from the files, which are all in one format.

    Raises:
        yurt.errors.UsageError: where a file is in no format that can be read, or does not make a job.
    """
    formats = [format_of(source) for source in sources]
    if len(set(formats)) > 1:
        raise UsageError(f"the files are in different formats: {', '.join(dict.fromkeys(formats))}")
    for source, name in zip(sources, formats, strict=True):
        if name == YURT:
            raise UsageError(
                f"{source.file} is a Yurt job file already",
                hint="--to nomad and --to tfjob write it as the job file of another system",
            )
        if name not in READERS:
            raise UsageError(f"{source.file} is a {name}, which Yurt cannot read")
    try:
        converted: Converted = importlib.import_module(READERS[formats[0]]).read(sources, **options)
    except RecursionError:
        raise UsageError(f"{sources[0].file} is nested too deeply") from None
    return converted


def write_job(job: Job, name: str, **options: Any) -> Written:
    """The job as the text of another system's job file, and what that does not do."""
    written: Written = importlib.import_module(WRITERS[name]).write(job, **options)
    return written


def is_yurt(source: Source) -> bool:
    """Whether the text is meant as a Yurt job file, good or bad: what is wrong with one, `yurt.job` says best."""
    try:
        return format_of(source) == YURT
    except UsageError:
        return False


def is_tfjob(source: Source) -> bool:
    """Whether the text is a manifest of Kubernetes, or a template of one."""
    try:
        return format_of(source) == TFJOB
    except UsageError:
        return False


def format_of(source: Source) -> str:
    """The format of a text, by what it holds. Raises `UsageError` for a text that is in none."""
    text = source.text
    if not text.strip():
        raise UsageError(f"{source.file} is empty")
    if re.match(r"\s*\{(?!\{)", text):  # {{ begins a template
        return _of_json(source)
    if _HCL_JOB.search(text):
        return NOMAD
    if _MANIFEST.search(text) or _JSONNET.search(text):
        return TFJOB
    if _YURT_KEY.search(text):
        return YURT
    raise UsageError(f"{source.file} is no job file that Yurt knows: neither a job block nor a kind is in it")


def _of_json(source: Source) -> str:
    try:
        data = json.loads(source.text)
    except json.JSONDecodeError as error:
        raise UsageError(f"{source.file}:{error.lineno} is not JSON: {_plain(error.msg)}") from None
    except RecursionError:
        raise UsageError(f"{source.file} is nested too deeply") from None
    if isinstance(data, Mapping):
        if "kind" in data or "apiVersion" in data:
            return TFJOB
        if "Job" in data or "TaskGroups" in data:
            return NOMAD
        if "job" in data:
            raise UsageError(
                f"{source.file} is HCL written as JSON, which Yurt does not read",
                hint="`nomad job run -output FILE` prints the job as the JSON that Yurt reads",
            )
        if "command" in data or "roles" in data:
            return YURT
    raise UsageError(f"{source.file} is no job: it has neither Job nor TaskGroups, nor a kind")


def _plain(message: str) -> str:
    return message[:1].lower() + message[1:]
