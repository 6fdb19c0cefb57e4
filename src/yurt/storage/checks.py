"""Before a run starts: find out whether its model can be put where the job says."""

from __future__ import annotations

from yurt.storage.place import Limits, open_place
from yurt.storage.urls import parse_output


def check_output(output: str, *, needed_bytes: int = 0, probe: bool = True, retry_timeout_s: float = 15) -> None:
    """Find out whether models can be published at `output`, and leave nothing behind.

    A folder is made if need be, written to, asked for `needed_bytes` of room, and taken away again when it was
    made here. An object store gets a tiny object that is deleted at once; with `probe` off, only the client's
    settings are looked at and nothing is sent.

    Raises:
        StorageFailed: it cannot be written to; `reason` and `hint` say why.
        UsageError: the output is wrong.
    """
    place = open_place(parse_output(output), Limits(retry_timeout_s))
    if probe or place.location.scheme == "file":
        place.check(needed_bytes)
