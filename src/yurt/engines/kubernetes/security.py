"""The security contexts by which a pod keeps to the restricted pod security standard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yurt.engines.kubernetes.merging import merged, plain


def of_pod(theirs: Mapping[str, Any], *, restricted: bool) -> dict[str, Any]:
    """The pod's; what the user says wins. Who it runs as is the image's affair, or theirs."""
    ours = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}} if restricted else {}
    found: dict[str, Any] = merged(ours, theirs)
    return found


def of_container(theirs: Mapping[str, Any], *, restricted: bool) -> dict[str, Any]:
    """A container's; what the user says wins, and of lists the user's stands alone."""
    if not restricted:
        found: dict[str, Any] = plain(theirs)
        return found
    capabilities = {"drop": ["ALL"], **plain(theirs.get("capabilities") or {})}
    return {"allowPrivilegeEscalation": False, **plain(theirs), "capabilities": capabilities}
