"""Brings text through Nomad letter for letter.

Nomad interpolates ``${...}`` in a task's `Env` and `Meta` and evaluates `Config` as an HCL2 template; a `template`'s
text alone is left as it is, if its delimiters are some that do not occur in it (Nomad 1.0.18 and 1.6.1, seen).
"""

from __future__ import annotations

import re
from typing import Any


def in_config(text: str) -> str:
    """A literal for `Config`: ``${`` and ``%{`` doubled."""
    return re.sub(r"([$%])\{", r"\1\1{", text)


def template(text: str, path: str, *, perms: str = "0644") -> dict[str, Any]:
    """A template block that writes `text` at `path` below the task's folder, unchanged.

    An empty text is refused by Nomad.
    """
    left, right = _delimiters(text)
    return {
        "EmbeddedTmpl": text,
        "DestPath": path,
        "Perms": perms,
        "LeftDelim": left,
        "RightDelim": right,
        "ChangeMode": "noop",
    }


def _delimiters(text: str) -> tuple[str, str]:
    tildes = "~"
    while f"<<<{tildes}" in text:
        tildes += "~"
    return f"<<<{tildes}", f"{tildes}>>>"
