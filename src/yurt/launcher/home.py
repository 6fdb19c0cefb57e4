"""Where Yurt keeps what it remembers: ``$YURT_HOME``, else ``~/.local/state/yurt`` (or below ``$XDG_STATE_HOME``)."""

from __future__ import annotations

import os
from pathlib import Path

from yurt.errors import LauncherError


def home() -> Path:
    """The folder, made with mode 0700 where it is missing. Raises LauncherError where that cannot be done."""
    if named := os.environ.get("YURT_HOME"):
        folder = Path(named).expanduser().absolute()
    else:
        folder = Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state").absolute() / "yurt"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise LauncherError(
            f"cannot keep runs in {folder}: {error.strerror}", hint="set YURT_HOME to a folder that can be written"
        ) from error
    return folder


def runs() -> Path:
    """One folder a run."""
    return home() / "runs"
