"""Values as they were written: what YAML reads a word as, kept together with the word itself.

YAML reads ``1.10`` as 1.1 and ``no`` as false. A job file wants the text where text is meant, so
every scalar that YAML does not read as text comes as a `Written`. Python values come as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from os import PathLike, fspath
from typing import Any

from yurt.job.findings import mistake, quoted


@dataclass(frozen=True, slots=True)
class Written:
    """A scalar of a file: `value` is what YAML reads, `text` is what stands there."""

    value: bool | float | None
    text: str


def bare(raw: Any) -> Any:
    """The value without the text it was written as."""
    return raw.value if isinstance(raw, Written) else raw


def plain(raw: Any) -> Any:
    """The same for a whole tree of mappings and lists."""
    if isinstance(raw, Mapping):
        return {key: plain(item) for key, item in raw.items()}
    if isinstance(raw, list | tuple):
        return [plain(item) for item in raw]
    return bare(raw)


def found(raw: Any) -> str:
    """What stands there, in plain words, to follow "not"."""
    value = bare(raw)
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        word = raw.text if isinstance(raw, Written) else str(value)
        return f"a boolean ({word})"
    if isinstance(value, int | float):
        text = number_text(raw)
        return f"the number {text[:40]}{'…' if len(text) > 40 else ''}"
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    return f"a {type(value).__name__}"


def number_text(raw: Any) -> str:
    """A number's text: as written in a file, as Python writes it otherwise."""
    if isinstance(raw, Written):
        return raw.text
    value = bare(raw)
    if isinstance(value, int) and value.bit_length() > 1024:
        return "beyond all bounds"  # Python refuses to print very long numbers
    return repr(float(value)) if isinstance(value, float) else str(int(value))


def yaml_reads(raw: Any) -> str | None:
    """A clause such as ``YAML reads no as false`` for a word that YAML takes for something else."""
    if not isinstance(raw, Written) or not (raw.value is None or isinstance(raw.value, bool)):
        return None
    if raw.text == "":
        return None
    as_what = {True: "true", False: "false", None: "nothing"}[raw.value]
    if as_what == raw.text.lower():
        as_what = "a boolean"
    return f"YAML reads {raw.text} as {as_what}"


def read_text(raw: Any, *, wanted: str = "text") -> str:
    """Text; a number stands for its text as written. Raises a mistake for everything else."""
    value = bare(raw)
    if isinstance(value, PathLike):
        value = fspath(value)
    if isinstance(value, str):
        if "\0" in value:
            raise mistake(f"must be {wanted}, and text cannot hold a NUL character")
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise mistake(f"must be {wanted}, and half of a surrogate pair is not a character")
        return str(value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return number_text(raw)
    if clause := yaml_reads(raw):
        raise mistake(f"must be {wanted}, but {clause}", f'quote it: "{raw.text}"')
    if value is None:
        raise mistake(f"has no value; it must be {wanted}")
    raise mistake(f"must be {wanted}, not {found(raw)}")


def read_whole_number(raw: Any, *, wanted: str) -> int:
    """A whole number. Raises a mistake where YAML's reading differs from the look of the text."""
    value = bare(raw)
    if not isinstance(value, int) or isinstance(value, bool):
        raise mistake(f"must be {wanted}, not {found(raw)}", _unquote(value))
    if isinstance(raw, Written):
        digits = raw.text.replace("_", "").removeprefix("-").removeprefix("+")
        if not digits.isdecimal() or (len(digits) > 1 and digits.startswith("0")):
            raise mistake(f"must be {wanted}, but YAML reads {raw.text} as {value}", f"write {value}")
    return int(value)


def _unquote(value: Any) -> str | None:
    if isinstance(value, str) and value.strip().isdecimal() and value.isascii():
        return f"write {value.strip().lstrip('0') or '0'} without quotes"
    return None
