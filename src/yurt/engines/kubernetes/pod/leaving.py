"""The pods of a TFJob end together: once one has ended, the operator removes those that still run, with their output.

Seen of the training operator 1.9.3 under cleanPodPolicy Running, a second or two after the end of the deciding pod, or
of any that failed.
"""

from __future__ import annotations

import time
from typing import Final

from yurt.agent.remembering import RememberingStore
from yurt.contract.state import EXITED, LOST
from yurt.errors import StoreError

#: Seconds beyond the grace time of their tasks for which the others are waited for, and between two looks.
_PATIENCE_S: Final = 5.0
_LOOK_S: Final = 0.2


def wait_for_others(store: RememberingStore) -> None:
    """Where the run has its verdict: until the agents of all other tasks have written their last member."""
    state = store.newest
    if state is None or state.verdict is None:
        return
    end = time.monotonic() + state.stop_grace_s + _PATIENCE_S
    try:
        while time.monotonic() < end:
            members = store.members(state.generation).values()
            if all(member.status in (EXITED, LOST) for member in members):
                return
            time.sleep(_LOOK_S)
    except StoreError:
        return  # the run's keeper has seen them off, or the run was removed
