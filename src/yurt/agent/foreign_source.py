"""The scripts that the task's own Python runs, read from wherever the agent lies: a folder or its zipapp."""

from __future__ import annotations

import os


def source(name: str) -> bytes:
    """The text of one file of the folder ``foreign``."""
    path = os.path.join(os.path.dirname(__file__), "foreign", name)
    data: bytes = __spec__.loader.get_data(path)  # type: ignore[union-attr]  # a file's and a zip's loader have it
    return data


def standard_server_command(folder: str) -> tuple[str, ...]:
    """The command of a task that has none of its own; writes its script into `folder`."""
    script = os.path.join(folder, "standard_server.py")
    with open(script, "wb") as file:
        file.write(source("standard_server.py"))
    return ("python", script)
