"""The deciding pod of a TFJob ends last: once it has, the operator removes those that still run, with their output.

Training operator 1.9.3, cleanPodPolicy Running. It goes by what the kubelets have told: a pod whose process has ended
is taken for running until a second or so later.
"""

from __future__ import annotations

import time
from typing import Final

from yurt.agent.remembering import RememberingStore
from yurt.contract.state import EXITED, LOST, SUCCEEDED
from yurt.errors import StoreError

#: Seconds beyond the grace time of their tasks for which the others are waited for, and between two looks.
_PATIENCE_S: Final = 5.0
_LOOK_S: Final = 0.2
#: Seconds until the cluster knows that they have ended.
_KNOWN_S: Final = 2.0


def leave_last(store: RememberingStore) -> None:
    """Where the run has succeeded and this is the deciding task: wait until all others have left."""
    state, own, run = store.newest, store.own, store.spec
    if state is None or state.verdict is None or state.verdict.outcome != SUCCEEDED or len(run.tasks) == 1:
        return
    if own is None or own.task != run.deciding:
        return
    end = time.monotonic() + state.stop_grace_s + _PATIENCE_S
    try:
        while time.monotonic() < end:
            others = [member for task, member in store.members(state.generation).items() if task != own.task]
            if all(member.status in (EXITED, LOST) for member in others):
                break
            time.sleep(_LOOK_S)
    except StoreError:
        return  # the run's keeper has seen them off, or the run was removed
    time.sleep(_KNOWN_S)
