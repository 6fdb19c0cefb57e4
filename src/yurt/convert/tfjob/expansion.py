"""``$(NAME)`` in commands and variables, which the kubelet fills in from the container's variables.

``$$`` stands for one ``$``; a name that is no variable of the container stays as it is written. (Kubernetes:
third_party/forked/golang/expansion.)
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Container, Mapping
from typing import Final

_PIECE: Final = re.compile(r"\$(?:\$|\((?P<name>[^)]*)\))")


def expanded(text: str, values: Mapping[str, str]) -> str:
    """The text as a process gets it, where all variables are known."""
    return _PIECE.sub(
        lambda match: "$" if match["name"] is None else values.get(match["name"], match[0]),
        text,
    )


def partly(text: str, values: Mapping[str, str]) -> str:
    """The text with these variables filled in, and the rest left to the kubelet."""
    return _PIECE.sub(
        lambda match: match[0] if match["name"] not in values else kept(values[match["name"]]),
        text,
    )


def names_in(text: str) -> list[str]:
    """The names that are asked for, whether or not there are such variables."""
    return [match["name"] for match in _PIECE.finditer(text) if match["name"] is not None]


def shell_word(word: str, values: Mapping[str, str], late: Container[str]) -> str:
    """One word of a line of shell, in which the variables of `late` are filled in as the shell knows them."""
    shown, text, end = "", "", 0
    for match in _PIECE.finditer(word):
        name = match["name"]
        text += word[end : match.start()]
        end = match.end()
        if name is not None and name not in values and name in late:
            shown += (shlex.quote(text) if text else "") + f'"${{{name}}}"'
            text = ""
        else:
            text += "$" if name is None else values.get(name, match[0])
    text += word[end:]
    return shown + (shlex.quote(text) if text or not shown else "")


def kept(text: str) -> str:
    """The text written so that the kubelet changes nothing of it."""
    return re.sub(r"\$(?=[$(])", "$$", text)
