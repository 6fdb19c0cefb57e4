"""Addresses of a rig. All but the link to this machine are in the rig's own network: the same ones for every rig.

===============  ==================================================================
10.88.0.0/16     pods, all on one bridge; node N gives out 10.88.N.0/24
10.88.0.1        that bridge: the pods' gateway, and the cluster's DNS
10.89.0.N        node N
10.96.0.0/16     services
10.213.L.0/30    the link (see link.py): .1 this machine as pods see it, .2 the API server
===============  ==================================================================
"""

from __future__ import annotations

from typing import Final

PODS: Final = "10.88.0.0/16"
GATEWAY: Final = "10.88.0.1"
SERVICES: Final = "10.96.0.0/16"
API_SERVICE: Final = "10.96.0.1"


def node(number: int) -> str:
    return f"10.89.0.{number}"


def pods_of(number: int) -> tuple[str, str]:
    """First and last address that a node gives to its pods."""
    return f"10.88.{number}.2", f"10.88.{number}.254"
