"""What this machine has: CPUs that may be used, GPUs."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import dataclass
from pathlib import Path

from yurt.engines.gpus import gpus


@dataclass(frozen=True, slots=True)
class Machine:
    """CPU numbers, GPU ids as CUDA_VISIBLE_DEVICES takes them, the host's name and the launcher's Python."""

    cpus: tuple[int, ...]
    gpus: tuple[str, ...]
    name: str
    python: str
    #: Folder that comes first on the tasks' PATH: the environment Yurt is installed in, where none is active.
    python_folder: str | None


def look() -> Machine:
    """This machine as it is now."""
    active = os.environ.get("VIRTUAL_ENV") or os.environ.get("CONDA_PREFIX")
    isolated = sys.prefix != sys.base_prefix
    return Machine(
        cpus=tuple(sorted(os.sched_getaffinity(0))),
        gpus=gpus(),
        name=socket.gethostname(),
        python=sys.executable,
        python_folder=str(Path(sys.executable).parent) if isolated and not active else None,
    )
