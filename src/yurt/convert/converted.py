"""What every conversion ends in: the result, and a note for all that it could not carry."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from yurt.job import Job

#: Characters that end a comment for YAML, or that a terminal would act on.
_UNSHOWN: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff\ud800-\udfff]")
_WIDEST: Final = 110


@dataclass(frozen=True, slots=True)
class Note:
    """One thing that was not carried, or not literally; `place` says where it stands.

    Lines and columns count from 1.
    """

    place: str
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        where = ":".join(str(part) for part in (self.file, self.line, self.column) if part is not None)
        return one_line(": ".join(part for part in (where, self.place, self.message) if part))


@dataclass(frozen=True, slots=True)
class Converted:
    """A job and what is to be told about it."""

    job: Job
    notes: tuple[Note, ...]


@dataclass(frozen=True, slots=True)
class Written:
    """A job as the text of another system's job file, and what that does not do that Yurt did."""

    text: str
    notes: tuple[Note, ...]


def one_line(text: str) -> str:
    """The text on one line, whatever it holds."""
    return _UNSHOWN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def as_comments(notes: Iterable[Note], head: str) -> list[str]:
    """The notes as lines of a comment, without the sign that begins one."""
    notes = list(notes)
    if not notes:
        return []
    return [head, *(f"  {note}" for note in notes)]


def job_file(converted: Converted, origin: str) -> str:
    """The job as the text of a job file, its notes as comments above; `origin` says what it was made from."""
    head = f"# {one_line(f'Made from {origin} by yurt convert.')}"
    told = as_comments(converted.notes, "Look at what could not be carried over, or not literally:")
    return "\n".join([head, *(f"# {line}" for line in told), "", _as_yaml(converted.job.as_file())])


def _as_yaml(data: dict[str, Any]) -> str:
    """A line for each key of the job, and what has no containers inside on one line: ``{replicas: 2, gpus: 1}``."""
    import yaml

    class Dumper(yaml.SafeDumper):
        def represent(self, data: Any) -> None:
            node = self.represent_data(data)
            if isinstance(node, yaml.CollectionNode):
                node.flow_style = False
            self.serialize(node)

    text: str = yaml.dump(
        data, Dumper=Dumper, sort_keys=False, allow_unicode=True, default_flow_style=None, width=_WIDEST
    )
    return text
