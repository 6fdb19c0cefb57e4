"""Keeps secrets out of everything shown or stored."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

_TELLING: Final = ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "KEY", "CREDENTIAL")
HIDDEN: Final = "<hidden>"


def secret(name: str) -> bool:
    """Whether a variable of this name is taken for a secret."""
    return any(word in name.upper() for word in _TELLING)


def redacted(variables: Mapping[str, str]) -> dict[str, str]:
    """The variables with the values of secrets hidden."""
    return {name: HIDDEN if secret(name) and value else value for name, value in variables.items()}
