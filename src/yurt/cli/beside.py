"""What a run tells beside its model: where its trackers' files are, bad rows that were left out, waiting for input."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from yurt.cli import words
from yurt.contract.progress import waiting
from yurt.contract.spec import RunSpec
from yurt.launcher.records import RunFolder, Snapshot

#: From this share of its time on, waiting for input is worth a hint at the end.
_WORTH_A_HINT: Final = 0.2


def ways_to_look(folder: RunFolder) -> Iterator[str]:
    """The commands that show what the run's trackers have kept on this machine: ``tensorboard --logdir ...``."""
    for place in (folder.path / "tracking", folder.path / "checkpoints" / "tracking"):
        if (place / "tensorboard").is_dir():
            yield f"tensorboard --logdir {_word(place / 'tensorboard')}"
        if (place / "mlflow").is_dir():
            yield f"MLFLOW_ALLOW_FILE_STORE=true mlflow ui --backend-store-uri {_word(place / 'mlflow')}"
        for offline in sorted(place.glob("wandb/offline-run-*")):
            yield f"wandb sync {_word(offline)}"


def skipped(spec: RunSpec, snapshot: Snapshot) -> Iterator[str]:
    """``3 bad rows of data/train``: every task looks at all files and tells the same, so the deciding one's word."""
    beat = snapshot.beats.get(spec.deciding)
    told = beat.progress.get("skipped") if beat else None
    for path, count in told.items() if isinstance(told, dict) else ():
        if isinstance(count, int):
            yield f"{words.counted(count, 'bad row')} of {path}"


def waited(spec: RunSpec, snapshot: Snapshot) -> Iterator[str]:
    """A hint, where a task waited for its input for much of its last seconds."""
    shares = {name: waiting(beat.progress) for name, beat in snapshot.beats.items() if name in spec.training}
    slow = [name for name in spec.training if shares.get(name, 0.0) >= _WORTH_A_HINT]
    if slow:
        most = max(shares[name] for name in slow)
        yield (
            f"hint: {words.listed(slow)} waited for input {100 * most:.0f} % of the time: batch before you map, "
            "prefetch, or cache what fits into memory (docs/data.md)"
        )


def _word(path: Path) -> str:
    return shlex.quote(words.place(str(path)))
