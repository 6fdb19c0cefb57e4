"""How this room says something to people while it trains."""

from __future__ import annotations

import sys


def say(text: str) -> None:
    """One line on standard error. Who calls it is the leader, or speaks of this task alone."""
    print(f"yurt: {text}", file=sys.stderr, flush=True)
