"""A command: one string or a list of words. It never goes through a shell.

A string is split into words as a shell would do it, quotes and backslashes included, and nothing
else of a shell happens: no variables, no patterns, no pipes. What only a shell could do is refused,
because it would reach the script as an argument and puzzle everybody.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from yurt.job.findings import mistake, quoted
from yurt.job.written import bare, found, read_text, yaml_reads

_OPERATOR = re.compile(r"[|;&].*|[0-9]*[<>].*", re.DOTALL)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=", re.ASCII)
_SHELL_HINT = 'if a shell is meant, write ["sh", "-c", "..."]'
_WANTED = "a command: text, or a list of words"


def read_command(raw: Any) -> Any:
    """The words of a written command. A list is passed on, for its words to be read one by one."""
    value = bare(raw)
    if isinstance(value, str):
        return split(read_text(value))
    if isinstance(value, list | tuple):
        if not value:
            raise mistake("is empty", "name a script, such as `python train.py`")
        return value
    if clause := yaml_reads(raw):
        raise mistake(f"must be {_WANTED}, but {clause}", f'quote it: "{raw.text}"')
    raise mistake(f"must be {_WANTED}, not {found(raw)}")


def read_word(raw: Any) -> str:
    """One word of a list: text, or a number's text as it was written.

    YAML reads a bare ``{role}`` as a mapping.
    """
    if isinstance(raw, Mapping) and len(raw) == 1 and next(iter(raw)) in ("role", "index", "address"):
        word = f"{{{next(iter(raw))}}}"
        raise mistake(f"must be text or a number, but YAML reads {word} as a mapping", f'quote it: "{word}"')
    return read_text(raw, wanted="text or a number")


def finished(words: Sequence[str]) -> tuple[str, ...]:
    """The words to run: `python` is put before a script or a ``-m``; nothing else changes."""
    if not words[0].strip():
        raise mistake("begins with an empty word", "name a script, such as `python train.py`")
    if words[0].endswith(".py") or words[0] == "-m":
        return ("python", *words)
    return tuple(words)


def split(text: str) -> list[str]:
    """The words of one line. Raises a mistake for open quotes and for what needs a shell."""
    joined, raw_words = _scan(text)
    for word in raw_words:
        if word == "\n":
            raise mistake("has several lines, which would be several commands", _SHELL_HINT)
        if _OPERATOR.fullmatch(word) or (word.endswith(";") and not word.endswith("\\;")):
            message = f"holds {quoted(word)}, which only a shell understands, and no shell runs this"
            raise mistake(message, _SHELL_HINT)
    if raw_words and _ASSIGNMENT.match(raw_words[0]):
        name = raw_words[0].partition("=")[0]
        message = f"begins with {quoted(raw_words[0])}, which only a shell understands"
        raise mistake(message, f"write {quoted(name)[1:-1]} under env")
    try:
        words = shlex.split(joined)
    except ValueError as error:
        raise mistake(f"cannot be split into words: {error}") from None
    if not words:
        raise mistake("is empty", "name a script, such as `python train.py`")
    return words


def _scan(text: str) -> tuple[str, list[str]]:
    """The text with continued lines joined, and its words as they stand, quotes included.

    A line break outside quotes counts as a word of its own, except around the text.
    """
    joined: list[str] = []
    words: list[str] = []
    word = ""
    quote = ""
    letters = iter(text.strip(" \t\r\n"))
    for letter in letters:
        piece = letter
        if letter == "\\" and quote != "'":
            following = next(letters, "")
            if not following:
                raise mistake("ends with a backslash that escapes nothing")
            if following == "\n":
                joined.append("" if quote else " ")
                words, word = (words, word) if quote else ([*words, word] if word else words, "")
                continue
            piece = letter + following
        elif quote:
            quote = "" if letter == quote else quote
        elif letter in "'\"":
            quote = letter
        elif letter in " \t\r\n":
            words += [word] if word else []
            words += ["\n"] if letter == "\n" and words[-1:] != ["\n"] else []
            word = ""
            joined.append(letter)
            continue
        joined.append(piece)
        word += piece
    if quote:
        raise mistake(f"has a quote ({quote}) that is never closed")
    return "".join(joined), [*words, word] if word else words


def write_command(words: Sequence[str]) -> str | list[str]:
    """One line where that reads well and means the same words, else the list of them."""
    line = shlex.join(words)
    try:
        same = "\n" not in line and '"' not in line and tuple(words) == finished(split(line))
    except ValueError:
        same = False
    return line if same else list(words)
