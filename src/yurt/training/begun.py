"""Where a training begins: the newest whole checkpoint, read by the leader and given to all members."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from yurt.training import kept
from yurt.training.errors import TrainingError
from yurt.training.gang import Gang
from yurt.training.saying import say


@dataclass(frozen=True)
class Begun:
    """`step` steps into `epoch`, both from 0, after `steps_done` in all; the rest is the checkpoint's.

    `name` is its file's, None at the very beginning.
    """

    epoch: int = 0
    step: int = 0
    steps_done: int = 0
    final: bool = False
    name: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray[Any, Any]] = field(default_factory=dict)

    @property
    def dtypes(self) -> dict[str, str]:
        """What numpy has no dtype for, by variable."""
        return dict(self.metadata.get("dtypes", {}))

    def ended(self, epochs: int | None) -> bool:
        """Whether there is nothing left to train: ended, and not asked for more epochs now than then."""
        if self.metadata.get("stopped"):
            return True
        return self.final and (epochs is None or epochs <= max(self.epoch, int(self.metadata.get("epochs") or 0)))


def begin(folder: Path, gang: Gang, *, within: bool) -> Begun:
    """The same on every member. Without `within` only epochs' ends count. A broken file is passed over, and said so.

    Raises TrainingError on every member where the leader cannot read the folder.
    """
    payload = b""
    if gang.leads:
        try:
            payload = _newest(folder, within=within)
        except (OSError, TrainingError) as error:
            payload = b"E" + f"{folder}: {error}".encode()
    payload = gang.share(payload)
    if payload[:1] == b"E":
        raise TrainingError(payload[1:].decode())
    if not payload:
        return Begun()
    name, _, content = payload[1:].partition(b"\n")
    metadata, arrays = kept.read(io.BytesIO(content))
    return Begun(
        metadata["epoch"],
        metadata["step"],
        metadata["steps_done"],
        metadata["final"],
        json.loads(name),
        metadata,
        arrays,
    )


def _newest(folder: Path, *, within: bool) -> bytes:
    """The file's name and content; nothing where there is none."""
    bad = kept.broken(folder)
    whole = kept.listed(folder)
    for each in reversed([one for one in whole if within or one.boundary]):
        content = each.path.read_bytes()
        try:
            kept.read(io.BytesIO(content))
        except TrainingError:
            bad.append(each.path)
            continue
        _tell(bad, each.path.name)
        if not within and each != whole[-1]:
            say(
                f"training goes on at the beginning of epoch {each.epoch + 1}, although {whole[-1].path.name} is "
                "further on: fit's data was not passed through checkpoint.resume(...)"
            )
        return b"C" + json.dumps(each.path.name).encode() + b"\n" + content
    _tell(bad, None)
    return b""


def _tell(bad: list[Path], instead: str | None) -> None:
    for path in bad:
        say(f"{path.name} is broken; training {f'goes on from {instead}' if instead else 'begins at its beginning'}")
