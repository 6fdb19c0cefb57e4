"""How much of a job's files travels inside the run's config maps."""

from __future__ import annotations

from typing import Final

from yurt.engines.travel.payload import Room

#: Bytes that one config map may hold (Kubernetes 1.36: 1 MiB with its keys), and how many of them a run has at most.
PIECE_BYTES: Final = 900 * 1024
MOST_PIECES: Final = 4
ROOM: Final = Room(
    "kubernetes",
    "the config maps of a run",
    MOST_PIECES * PIECE_BYTES * 4 // 3,
    packages=("engines/kubernetes/pod",),
    compression="gz",
)
