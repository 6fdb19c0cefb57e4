"""The files that the task's own Python runs, read from wherever the agent lies: a folder or its zipapp."""

from __future__ import annotations

import os
from typing import Final

#: The files of the folder ``training/hook``: a zipapp's loader reads files and lists none.
HOOK_FILES: Final = (
    "sitecustomize.py",
    "_yurt_alias.py",
    "_yurt_backup.py",
    "_yurt_finders.py",
    "_yurt_fit.py",
    "_yurt_gradients.py",
    "_yurt_input.py",
    "_yurt_leaving.py",
    "_yurt_losses.py",
    "_yurt_manners.py",
    "_yurt_multi_worker.py",
    "_yurt_parameter_server.py",
    "_yurt_progress.py",
    "_yurt_proven.py",
    "_yurt_saving.py",
    "_yurt_task.py",
    "_yurt_tracking.py",
    "_yurt_waiting.py",
)


def source(name: str) -> bytes:
    """The text of one file of the folder ``foreign``."""
    return _read(os.path.join(os.path.dirname(__file__), "foreign", name))


def probe_program() -> str:
    """The program that looks at a Python and reads a script."""
    return b"".join(map(source, ("keras_names.py", "source_facts.py", "probe.py"))).decode()


def hook_source(name: str) -> bytes:
    """The text of one file of the folder ``training/hook``."""
    return _read(os.path.join(os.path.dirname(os.path.dirname(__file__)), "training", "hook", name))


def _read(path: str) -> bytes:
    data: bytes = __spec__.loader.get_data(path)  # type: ignore[union-attr]  # a file's and a zip's loader have it
    return data


def hook_folder(folder: str) -> str:
    """The folder to put first on PYTHONPATH; written below `folder`."""
    target = os.path.join(folder, "hook")
    os.makedirs(target, exist_ok=True)
    for name in HOOK_FILES:
        with open(os.path.join(target, name), "wb") as file:
            file.write(hook_source(name))
    return target


def packages() -> str:
    """Where this Yurt is imported from, and a task's script may import it too: the agent's zipapp, or a folder."""
    return os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def standard_server_command(folder: str) -> tuple[str, ...]:
    """The command of a task that has none of its own; writes its script into `folder`."""
    script = os.path.join(folder, "standard_server.py")
    with open(script, "wb") as file:
        file.write(source("standard_server.py"))
    return ("python", script)
