"""Since which version Nomad knows what: one table, and what follows for a cluster of an older one. Pure.

From Nomad's changelog, but for what was seen to work or to fail on 1.0.18 and 1.6.1. What a server does not know it
leaves out of a job in silence: without this a typed word would have no effect, and nobody would be told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Final

from yurt.errors import EngineError

#: The oldest version that runs are known to work on.
OLDEST: Final = (1, 0, 0)


class Otherwise(Enum):
    """What is done where the cluster is older."""

    REFUSED = "refused"
    LEFT_OUT = "left out"


@dataclass(frozen=True, slots=True)
class Feature:
    """`since` is the first version with it; `instead` says what to do, or what holds, without it."""

    what: str
    since: tuple[int, int, int]
    otherwise: Otherwise
    instead: str


CORES: Final = Feature("cores: true", (1, 1, 0), Otherwise.LEFT_OUT, "tasks ask for MHz and are held to no cores")
#: Seen on 1.0.18: a network without a loopback, in which TensorFlow waits for itself for ever.
BRIDGE_EXEC: Final = Feature("network: bridge with the driver exec", (1, 3, 2), Otherwise.REFUSED, "take network: host")
NOMAD_VARIABLES: Final = Feature(
    "a secret from a Nomad variable", (1, 4, 0), Otherwise.REFUSED, "take it from Vault: vault: PATH"
)
ALL_DATACENTERS: Final = Feature(
    "datacenters with *", (1, 5, 0), Otherwise.REFUSED, "name the datacenters, or leave them out"
)
NODE_POOL: Final = Feature("node_pool", (1, 6, 0), Otherwise.REFUSED, "choose nodes by constraints")
VAULT_ROLE: Final = Feature(
    "vault: role", (1, 7, 0), Otherwise.REFUSED, "name Vault's policies: vault: {policies: [..]}"
)
FEATURES: Final = (CORES, BRIDGE_EXEC, NOMAD_VARIABLES, ALL_DATACENTERS, NODE_POOL, VAULT_ROLE)


def parsed(version: str) -> tuple[int, int, int] | None:
    """``1.6.1``, ``1.8.0-beta.1+ent`` -> three numbers; None for what is no version."""
    found = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", version)
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None


def knows(version: str, feature: Feature) -> bool:
    """Whether this version has the feature; one that is not known is taken to be new."""
    numbers = parsed(version)
    return numbers is None or numbers >= feature.since


def missing(version: str, feature: Feature) -> str | None:
    """None where the version has it; the sentence for a note where it is left out.

    Raises EngineError where a job cannot do without it.
    """
    if knows(version, feature):
        return None
    lacking = f"{feature.what} needs Nomad {_short(feature.since)} or later, and this cluster has {version}"
    if feature.otherwise is Otherwise.REFUSED:
        raise EngineError(lacking, hint=feature.instead)
    return f"{lacking}: {feature.instead}"


def check_oldest(version: str) -> None:
    """Raises EngineError for a cluster that is too old for any run."""
    numbers = parsed(version)
    if numbers is not None and numbers < OLDEST:
        raise EngineError(f"this cluster has Nomad {version}; Yurt needs {_short(OLDEST)} or later")


def _short(numbers: tuple[int, int, int]) -> str:
    return ".".join(str(number) for number in (numbers if numbers[2] else numbers[:2]))
