"""Whether a killed process ran out of memory: the kernel's own counters, before and after."""

from __future__ import annotations

import os


class OutOfMemoryWatch:
    """Remembers the kernel's count of out-of-memory kills and tells whether it grew.

    Reads ``oom_kill`` of this process's memory cgroup (v2 ``memory.events``, v1 ``memory.oom_control``), which
    counts kills by the task's own limit, and of ``/proc/vmstat`` (Linux 4.13), which counts those of the whole
    machine. On a machine that others share the second may be another's, so it counts only together with SIGKILL.
    The first is the task's alone in a container, where this agent is process 1.
    """

    def __init__(self, proc: str = "/proc", cgroups: str = "/sys/fs/cgroup") -> None:
        self._own = _cgroup_file(proc, cgroups)
        self._machine = os.path.join(proc, "vmstat")
        self._alone = os.getpid() == 1
        self._before = self._count()

    def grew(self) -> bool:
        """Whether anything was killed for want of memory since this watch was made."""
        return any(now > before for now, before in zip(self._count(), self._before))  # noqa: B905 - Python 3.9

    def grew_here(self) -> bool:
        """Whether something of the task itself was: not the task's process, maybe, but one that it had started."""
        return self._alone and self._count()[0] > self._before[0]

    def _count(self) -> tuple[int, int]:
        return _field(self._own, "oom_kill") if self._own else 0, _field(self._machine, "oom_kill")


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
            root, name = os.path.join(cgroups, "memory"), "memory.oom_control"
        elif not controllers:
            root, name = cgroups, "memory.events"
        else:
            continue
        # A container sees its own cgroup as the root, whatever path v1 shows.
        for file in (os.path.join(root, path.lstrip("/"), name), os.path.join(root, name)):
            if os.path.isfile(file):
                return file
    return None
