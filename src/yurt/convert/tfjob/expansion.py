"""``$(NAME)`` in commands and variables, which the kubelet fills in from the container's variables.

``$$`` stands for one ``$``; a name that is no variable of the container stays as it is written. (Kubernetes:
third_party/forked/golang/expansion.)
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
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


def shell_line(words: list[str], values: Mapping[str, str], late: Callable[[str], bool]) -> str:
    """The words as a line of shell, in which the variables that are known only in the pod are filled in late."""
    return " ".join(_shell_word(word, values, late) for word in words)


def _shell_word(word: str, values: Mapping[str, str], late: Callable[[str], bool]) -> str:
    pieces = []
    end = 0
    for match in _PIECE.finditer(word):
        name = match["name"]
        plain = word[end : match.start()]
        end = match.end()
        if name is not None and name not in values and late(name):
            pieces += [plain, None, name]
        else:
            pieces.append(plain + ("$" if name is None else values.get(name, match[0])))
    pieces.append(word[end:])
    shown = ""
    text = ""
    variable = False
    for piece in pieces:
        if piece is None:
            variable = True
        elif variable:
            shown += (shlex.quote(text) if text else "") + f'"${{{piece}}}"'
            text, variable = "", False
        else:
            text += piece
    return shown + (shlex.quote(text) if text or not shown else "")


def kept(text: str) -> str:
    """The text written so that the kubelet changes nothing of it."""
    return re.sub(r"\$(?=[$(])", "$$", text)
