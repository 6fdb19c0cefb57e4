"""Where the programs of a cluster are, and how they are had where they are not."""

from __future__ import annotations

import shutil
from enum import Enum

from yurt.errors import UsageError


class Install(Enum):
    """A program that Yurt starts, and where its makers tell how it is installed."""

    NOMAD = "nomad"
    CONSUL = "consul"


_HOW = {
    Install.NOMAD: "one binary: https://developer.hashicorp.com/nomad/install",
    Install.CONSUL: "one binary: https://developer.hashicorp.com/consul/install (Debian 11 has a package: consul)",
}


def find(program: Install) -> str:
    """Its path. Raises UsageError with how it is installed."""
    found = shutil.which(program.value)
    if found is None:
        raise UsageError(f"there is no `{program.value}` on PATH", hint=_HOW[program])
    return found
