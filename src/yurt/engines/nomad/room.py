"""How much of a job's files travels inside the Nomad job itself."""

from __future__ import annotations

from typing import Final

from yurt.engines.travel.payload import Room

#: Bytes of base64 that all groups of a job may have together. Nomad took 12 MiB (1.0.18), but every server keeps the
#: job in memory and every read of an allocation carries it.
LARGEST_JOB_BYTES: Final = 4 << 20


def room_for(groups: int) -> Room:
    """Of a job with so many groups: each holds the archive."""
    return Room("nomad", "a Nomad job", LARGEST_JOB_BYTES, groups)
