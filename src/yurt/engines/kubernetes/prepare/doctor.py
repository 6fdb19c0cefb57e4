"""All checks of a cluster, in the order in which one would mend what they find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from yurt.engines.finding import Finding, unknown
from yurt.engines.kubernetes.client import KubernetesError
from yurt.engines.kubernetes.prepare import gpus, nodes, operator_state, rights, server, space, storage
from yurt.engines.kubernetes.prepare.reading import Reading

Check = Callable[[Reading], Iterator[Finding]]
_CHECKS: Final[tuple[tuple[str, Check], ...]] = (
    (server.CHECK, server.check),
    (nodes.CHECK, nodes.check),
    (gpus.CHECK, gpus.check),
    (storage.CHECK, storage.check),
    (space.CHECK, space.check),
    (space.QUOTA_CHECK, space.check_quota),
    (rights.CHECK, rights.check),
    (operator_state.CHECK, operator_state.check),
)


def examine(reading: Reading) -> Iterator[Finding]:
    """As they are found. What this account may not see is a finding too. Raises EngineError where nobody answers."""
    for name, check in _CHECKS:
        yield from seen(name, check(reading))


def seen(name: str, findings: Iterator[Finding]) -> Iterator[Finding]:
    """The findings of one check; a refusal on the way ends it and is told."""
    try:
        yield from findings
    except KubernetesError as error:
        if error.status == 401:
            raise
        why = "it does not stand against a run by itself" if error.status == 403 else ""
        yield unknown(name, f"cannot be looked at: {error}", why)
