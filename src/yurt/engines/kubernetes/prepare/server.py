"""Whether the API server is new enough for runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from yurt.engines.finding import Finding, good, problem, unknown
from yurt.engines.kubernetes.prepare.reading import Reading

CHECK: Final = "server"
#: The first whose Jobs label pods with their index, by which a task knows which one it is (Kubernetes' changelog 1.28).
OLDEST: Final = (1, 28)


def check(reading: Reading) -> Iterator[Finding]:
    """Its version."""
    found = re.match(r"v?(\d+)\.(\d+)", reading.version)
    if found is None:
        yield unknown(CHECK, f"the API server's version is not understood: {reading.version!r}")
    elif (int(found[1]), int(found[2])) < OLDEST:
        wanted = ".".join(map(str, OLDEST))
        why = "the pods of older Jobs do not tell a task which one it is"
        yield problem(CHECK, f"this is Kubernetes {reading.version}", why, f"upgrade to {wanted} or later")
    else:
        cloud = f" on {reading.cloud.title}" if _nodes_seen(reading) and reading.cloud.name != "other" else ""
        yield good(CHECK, f"Kubernetes {reading.version}{cloud} answers")


def _nodes_seen(reading: Reading) -> bool:
    from yurt.engines.kubernetes.client import KubernetesError

    try:
        return bool(reading.nodes)
    except KubernetesError:
        return False
