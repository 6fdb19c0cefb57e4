"""What the end of an agent's process means."""

from __future__ import annotations

from yurt.engines.base import AllocationState


def state_of(returncode: int | None) -> AllocationState:
    """The allocation's state for an agent's return code as subprocess gives it.

    ==========================  =======
    None (still running)        RUNNING
    0, 1 (it went by itself)    ENDED
    anything else               LOST
    ==========================  =======

    An agent leaves with 0 or 1 once the run has its verdict; 128 + n when it was told to stop, a negative number
    when it was killed.
    """
    if returncode is None:
        return AllocationState.RUNNING
    return AllocationState.ENDED if returncode in (0, 1) else AllocationState.LOST
