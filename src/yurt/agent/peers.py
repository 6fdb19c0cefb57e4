"""Connects to every peer before training starts, and names those that cannot be reached."""

from __future__ import annotations

import time
from typing import Final

from yurt.agent.ports import greeting, meet
from yurt.contract.spec import RunSpec
from yurt.contract.state import NO_NAME, RunState

_ONE_TRY_S: Final = 2.0
_SHORTEST_TRY_S: Final = 0.2
#: As many times as long a name is waited for that does not resolve: a cluster takes the names of a machine's pods away
#: while that machine is not ready (Kubernetes: the Services of TFJobs do not publish such addresses; a name that was
#: gone for half a minute was seen with 1.36), and it may be a minute or two until it is ready again.
_NAMES_TIMES: Final = 4
#: In a large gang each task meets this many of its neighbours and the first task, not everyone: the number of
#: connections then grows with the gang, not with its square, and every machine is still met from several others.
_MOST_PEERS: Final = 64


def unreachable_peers(run: RunSpec, task: str, state: RunState, within_s: float) -> tuple[tuple[str, str, str], ...]:
    """Rows of (peer, address, error) for the peers that did not answer as themselves within `within_s` seconds.

    Four times as long where all of them have names that do not resolve.
    """
    waiting = dict(chosen(run, task, state))
    errors: dict[str, str] = {}
    began = time.monotonic()
    end = began + within_s
    pause = 0.02
    while True:
        for peer, address in list(waiting.items()):
            left_s = end - time.monotonic()
            if left_s <= 0 and peer in errors:
                break  # each was tried: with many that do not answer, another round would take minutes
            one_try_s = max(_SHORTEST_TRY_S, min(_ONE_TRY_S, left_s))
            error = meet(address, greeting(run.run_id, state.generation, peer), one_try_s)
            if error is None:
                del waiting[peer]
            else:
                errors[peer] = error
        if waiting and all(errors[peer].startswith(NO_NAME) for peer in waiting):
            end = began + _NAMES_TIMES * within_s
        if not waiting or time.monotonic() >= end:
            return tuple((peer, address, errors[peer]) for peer, address in waiting.items())
        time.sleep(pause)
        pause = min(pause * 2, 1.0)


def chosen(run: RunSpec, task: str, state: RunState) -> list[tuple[str, str]]:
    """The peers that this task meets, with their addresses."""
    cluster = state.cluster or {}
    addresses = [
        (f"{role}/{index}", address) for role, listed in cluster.items() for index, address in enumerate(listed)
    ]
    names = [name for name, _ in addresses]
    start = names.index(task) + 1 if task in names else 0
    others = [pair for pair in addresses[start:] + addresses[:start] if pair[0] != task]
    deciding = run.deciding
    first = [pair for pair in others[_MOST_PEERS:] if pair[0] == deciding]
    return others[:_MOST_PEERS] + first
