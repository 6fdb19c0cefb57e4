"""Ends what a task left behind: every process that carries its mark in the environment."""

from __future__ import annotations

import os
import signal
import time

from yurt.contract import names


def marked(mark: str, *, prefix: bool = False) -> list[int]:
    """Process ids whose environment holds ``YURT_PROCESS=<mark>`` (or begins so), this process left out.

    Linux's /proc shows the environment that a process was started with; those of other users are passed over.
    """
    wanted = f"{names.PROCESS}={mark}".encode()
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        try:
            with open(f"/proc/{entry}/environ", "rb") as file:
                variables = file.read().split(b"\0")
        except OSError:
            continue
        if any(value.startswith(wanted) if prefix else value == wanted for value in variables):
            found.append(int(entry))
    return found


def sweep(mark: str, *, prefix: bool = False, within_s: float = 2.0) -> int:
    """Kill all that carry the mark, and what they start meanwhile; how many were killed."""
    killed: set[int] = set()
    end = time.monotonic() + within_s
    while (pids := marked(mark, prefix=prefix)) and time.monotonic() < end:
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
                killed.add(pid)
            except OSError:
                pass
        time.sleep(0.01)
    return len(killed)
