"""The text of a file that is to be converted."""

from __future__ import annotations

import codecs
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from yurt.errors import UsageError

#: 4 MiB, in bytes: a Nomad job may carry templates.
LARGEST_FILE: Final = 4 * 1024**2


@dataclass(frozen=True, slots=True)
class Source:
    """A file as it was named, and its text."""

    file: str
    text: str


def read_source(path: Path) -> Source:
    """The text of one file, or of standard input for ``-``. Raises `UsageError` where it cannot be had."""
    file = "".join(letter if letter.isprintable() else "?" for letter in str(path))
    try:
        if file == "-":
            file = "standard input"
            data = sys.stdin.buffer.read(LARGEST_FILE + 1)
        else:
            with path.open("rb") as stream:
                data = stream.read(LARGEST_FILE + 1)
    except IsADirectoryError:
        raise UsageError(f"{file} is a folder", hint="name the job files in it") from None
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise UsageError(f"{file} does not exist") from None
    except OSError as error:
        raise UsageError(f"{file} cannot be read: {(error.strerror or str(error)).lower()}") from None
    if len(data) > LARGEST_FILE:
        raise UsageError(f"{file} is larger than 4 MiB, which no job file is")
    try:
        return Source(file, data.removeprefix(codecs.BOM_UTF8).decode())
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise UsageError(f"{file}:{line} is not UTF-8 text", hint="save it as UTF-8") from None
