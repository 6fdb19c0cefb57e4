"""What the daemon says of a container, as an allocation's state."""

from __future__ import annotations

from typing import Final

from yurt.engines.base import AllocationState

#: The agent's script ends with 127 where the image has no Python, the agent with 126 where that Python is too old or
#: the store out of reach, and Python 2 with 2. The last line of the log says why.
CANNOT_RUN: Final = (2, 126, 127)

_STATES: Final = {
    "created": AllocationState.PENDING,
    "running": AllocationState.RUNNING,
    "paused": AllocationState.RUNNING,
    "restarting": AllocationState.RUNNING,
    "removing": AllocationState.LOST,
    "dead": AllocationState.LOST,
}


def state_of(status: str | None, exit_code: int | None = None) -> AllocationState:
    """The state for a container's ``Status`` (Docker's API 1.41); None: there is no such container any more.

    ======================  =======
    created                 PENDING
    running, paused         RUNNING
    exited 0, 1             ENDED    the agent went by itself
    exited 2, 126, 127      ENDED    the agent could not run there
    exited with another     LOST     killed, or told to go
    removing, dead, none    LOST
    ======================  =======
    """
    if status == "exited":
        return AllocationState.ENDED if exit_code in (0, 1, *CANNOT_RUN) else AllocationState.LOST
    return _STATES.get(status or "", AllocationState.LOST)
