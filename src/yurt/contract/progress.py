"""How far a task is: one small JSON object, from the script's own file or read off its output.

A script (or a callback of it) may write the file that ``YURT_PROGRESS_FILE`` names, whole and by rename, as often
as it likes; the agent reads it with each heartbeat. All fields may be missing::

    {"epoch": 3, "epochs": 20, "step": 17, "steps": 25,       epochs and steps count from 1
     "loss": 0.034, "metrics": {"val_loss": 0.04},            the last values seen
     "examples_per_s": 51234.0,                               of this task
     "input_wait": 0.12,          share of the last seconds, 0 to 1, that this task waited for its input
     "skipped": {"data/train": 3}}                            bad rows left out, by data set; from data.json

A script that writes nothing is read by what Keras prints: ``Epoch 3/20`` and ``17/25 ... loss: 0.034``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_EPOCH = re.compile(r"^Epoch (\d+)/(\d+)\s*$")
_STEP = re.compile(r"^\s*(\d+)/(\d+)\s+(?:\[|\S*━|-\s)")
_UNKNOWN_STEP = re.compile(r"^\s*(\d+)/Unknown\s")
_VALUE = re.compile(r"(?:^|[\s-])([A-Za-z_][\w./]*): (-?\d+(?:\.\d+)?(?:e[+-]?\d+)?|nan|inf|-inf)(?=\s|$)")
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Za-z0-9]|\x1b[=>]")
_IGNORED = {"ETA"}
#: A smaller share of time that went into waiting for input is nobody's concern.
_WORTH_SAYING = 0.05


def clean(line: str) -> str:
    """A line as a person would see it last: without escapes, backspaces and what a carriage return overwrote."""
    if "\x1b" in line:
        line = _ESCAPE.sub("", line)
    if "\b" in line:
        # Keras goes back over its own bar with a run of backspaces: what follows the last run is what is seen.
        line = line[line.rindex("\b") + 1 :]
    if "\r" in line:
        parts = [part for part in line.split("\r") if part.strip()]
        line = parts[-1] if parts else ""
    return line


class KerasLines:
    """Reads progress off the lines that Keras 2 and 3 print (seen with tf_keras 2.21 and Keras 3.15)."""

    def __init__(self) -> None:
        self.progress: dict[str, Any] = {}

    def feed(self, line: str) -> bool:
        """Take one cleaned line; True if it told something."""
        if match := _EPOCH.match(line):
            self.progress.update(epoch=int(match[1]), epochs=int(match[2]))
            self.progress.pop("step", None)
            return True
        if match := _STEP.match(line):
            self.progress.update(step=int(match[1]), steps=int(match[2]))
        elif match := _UNKNOWN_STEP.match(line):
            self.progress.update(step=int(match[1]))
        else:
            return False
        metrics = {name: float(value) for name, value in _VALUE.findall(line) if name not in _IGNORED}
        if "loss" in metrics:
            self.progress["loss"] = metrics.pop("loss")
        if metrics:
            self.progress["metrics"] = metrics
        return True


def merged(from_output: Mapping[str, Any], from_file: Mapping[str, Any]) -> dict[str, Any]:
    """The script's own word wins over what was read off its output."""
    return {**from_output, **from_file}


def epoch_ended(progress: Mapping[str, Any]) -> bool:
    """Whether an epoch is known to have ended."""
    steps = progress.get("steps")
    return progress.get("epoch", 1) > 1 or (steps is not None and progress.get("step", 0) >= steps)


def waiting(progress: Mapping[str, Any]) -> float:
    """The share of its time, 0 to 1, that the task waited for input; 0 where it is not known."""
    share = progress.get("input_wait")
    return float(share) if isinstance(share, (int, float)) and 0 <= share <= 1 else 0.0


def in_words(progress: Mapping[str, Any]) -> str:
    """``epoch 3/20, step 17/25, loss 0.034, val_loss 0.04, 51,234 examples/s, 12 % waiting for input``."""
    parts = []
    for name in ("epoch", "step"):
        if name in progress:
            total = progress.get(f"{name}s")
            parts.append(f"{name} {progress[name]}" + (f"/{total}" if total else ""))
    values = {**({"loss": progress["loss"]} if "loss" in progress else {}), **progress.get("metrics", {})}
    parts += [f"{name} {value:.4g}" for name, value in values.items() if isinstance(value, (int, float))]
    if rate := progress.get("examples_per_s"):
        parts.append(f"{rate:,.0f} examples/s")
    if (share := waiting(progress)) >= _WORTH_SAYING:
        parts.append(f"{share:.0%} waiting for input".replace("%", " %"))
    return ", ".join(parts)
