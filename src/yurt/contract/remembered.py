"""Which of two states of one run is the later one, where a store has lost what it held and is filled again."""

from __future__ import annotations

from yurt.contract.state import PHASES, RunState


def is_later(one: RunState, other: RunState) -> bool:
    """Whether `one` came after `other`; both are of the same run.

    A verdict is later than anything without one: what was said to somebody stands. Else the generation decides, then
    the phase, then what is counted within them. A run's first state is later than none, so that a store which starts
    empty may write it before anybody who remembers more comes.
    """
    return _rank(one) > _rank(other)


def _rank(state: RunState) -> tuple[bool, int, int, int, int]:
    return (
        state.verdict is not None,
        state.generation,
        PHASES.index(state.phase),
        state.restarts,
        sum(state.attempts.values()),
    )
