"""The GPUs of this machine, by the ids that CUDA_VISIBLE_DEVICES takes."""

from __future__ import annotations

import os
import shutil
import subprocess


def gpus() -> tuple[str, ...]:
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
