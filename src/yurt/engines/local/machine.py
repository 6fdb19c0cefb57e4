"""What this machine has: CPUs that may be used, GPUs."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


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
        gpus=_gpus(),
        name=socket.gethostname(),
        python=sys.executable,
        python_folder=str(Path(sys.executable).parent) if isolated and not active else None,
    )


def _gpus() -> tuple[str, ...]:
    """Those that CUDA_VISIBLE_DEVICES leaves, else all that NVIDIA's driver lists. TensorFlow is not asked."""
    if (visible := os.environ.get("CUDA_VISIBLE_DEVICES")) is not None:
        return tuple(part.strip() for part in visible.split(",") if part.strip() not in ("", "-1", "NoDevFiles"))
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return ()
    try:
        result = subprocess.run([tool, "-L"], capture_output=True, text=True, timeout=20, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ()
    lines = [line for line in result.stdout.splitlines() if line.startswith("GPU ")]
    return tuple(str(number) for number in range(len(lines)))
