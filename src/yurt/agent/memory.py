"""Whether a killed process ran out of memory: the kernel's own counters, before and after."""

from __future__ import annotations

import os


class OutOfMemoryWatch:
    """Remembers the kernel's count of out-of-memory kills and tells whether it grew.

    Reads ``oom_kill`` of this process's memory cgroup (v2 ``memory.events``, v1 ``memory.oom_control``), which
    counts kills by the task's own limit, and of ``/proc/vmstat`` (Linux 4.13), which counts those of the whole
    machine. On a machine that others share the second may be another's, so it counts only together with SIGKILL.
    """

    def __init__(self, proc: str = "/proc", cgroups: str = "/sys/fs/cgroup") -> None:
        self._files = [file for file in (_cgroup_file(proc, cgroups), os.path.join(proc, "vmstat")) if file]
        self._before = self._count()

    def grew(self) -> bool:
        """Whether anything was killed for want of memory since this watch was made."""
        return any(now > before for now, before in zip(self._count(), self._before, strict=True))

    def _count(self) -> list[int]:
        return [_field(file, "oom_kill") for file in self._files]


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def _field(path: str, name: str) -> int:
    for line in _lines(path):
        key, _, value = line.partition(" ")
        if key == name and value.strip().isdigit():
            return int(value)
    return 0


def _cgroup_file(proc: str, cgroups: str) -> str | None:
    for line in _lines(os.path.join(proc, "self", "cgroup")):
        _, controllers, path = line.split(":", 2)
        if "memory" in controllers.split(","):
            file = os.path.join(cgroups, "memory", path.lstrip("/"), "memory.oom_control")
        elif not controllers:
            file = os.path.join(cgroups, path.lstrip("/"), "memory.events")
        else:
            continue
        if os.path.isfile(file):
            return file
    return None
