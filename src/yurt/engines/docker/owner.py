"""Whose a container is: the label that names the launcher of its run, and whether that launcher lives."""

from __future__ import annotations

import os
from pathlib import Path

#: Every container and network of Yurt's carries these.
OWNER = "yurt.owner"
RUN = "yurt.run"
TASK = "yurt.task"


def this_process() -> str:
    """``<uid>/<PID namespace>/<pid>/<start>``: names this process for good, among all that this kernel ever had."""
    return f"{_scope()}/{os.getpid()}/{_started(os.getpid())}"


def is_dead(owner: str) -> bool:
    """Whether the launcher with this label is gone. Of another user's, or one in another container, nobody can tell."""
    scope, _, process = owner.rpartition("/")
    scope, _, pid = scope.rpartition("/")
    return scope == _scope() and pid.isdigit() and _started(int(pid)) != process


def _scope() -> str:
    return f"{os.getuid()}/{Path('/proc/self/ns/pid').stat().st_ino}"


def _started(pid: int) -> str:
    """The start of a process since boot, in the kernel's ticks; empty where it is gone or a zombie."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in ("Z", "X") else fields[19]
