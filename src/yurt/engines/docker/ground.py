"""What rendering needs to know of the daemon and of who asks it."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from yurt.engines.docker import owner
from yurt.engines.gpus import gpus


@dataclass(frozen=True, slots=True)
class Ground:
    """CPU numbers and GPU ids that containers may get, the user and groups that tasks run as, the daemon's ways.

    `owner` is the label of the launcher. `rootless`: the daemon itself runs as the user. `remaps`: it maps users of
    containers to others (userns-remap). `selinux`: it labels files.
    """

    cpus: tuple[int, ...]
    gpus: tuple[str, ...]
    uid: int
    gid: int
    groups: tuple[int, ...]
    user: str
    owner: str
    rootless: bool = False
    remaps: bool = False
    selinux: bool = False


def look(info: Mapping[str, Any]) -> Ground:
    """This machine as it is now; `info` is the daemon's, or empty where none was asked."""
    every = os.cpu_count() or 1
    count = info.get("NCPU", every)
    # A daemon in a virtual machine of its own, or one that is itself held to few, has other CPUs than this process.
    cpus = sorted(os.sched_getaffinity(0)) if count >= every else range(count)
    security = {part.split(",")[0] for part in info.get("SecurityOptions") or ()}
    return Ground(
        cpus=tuple(cpus),
        gpus=gpus(),
        uid=os.getuid(),
        gid=os.getgid(),
        groups=tuple(sorted(set(os.getgroups()) - {os.getgid()})),
        user=_user(),
        owner=owner.this_process(),
        rootless="name=rootless" in security,
        remaps="name=userns" in security,
        selinux="name=selinux" in security,
    )


def is_own(address: str) -> bool:
    """Whether something on this machine can listen at an address."""
    try:
        with socket.create_server((address, 0), family=socket.AF_INET6 if ":" in address else socket.AF_INET):
            return True
    except OSError:
        return False


def _user() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return f"user{os.getuid()}"
