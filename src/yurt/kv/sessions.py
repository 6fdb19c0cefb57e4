"""The sessions of the embedded store and when each of them ends. No threads; the time is handed in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from yurt.kv.values import SessionInfo

if TYPE_CHECKING:
    from collections.abc import Iterator

    from yurt.kv.values import Behavior

GRACE_FACTOR = 2.0
"""A session ends this many TTLs after its last renewal (Consul 1.8.7: exactly two)."""


@dataclass(slots=True)
class _Session:
    info: SessionInfo
    ends_s: float | None


class Sessions:
    """Living sessions by id."""

    def __init__(self) -> None:
        self._by_id: dict[str, _Session] = {}
        self._next_end_s: float | None = None  # never later than the first end, maybe earlier

    def __iter__(self) -> Iterator[SessionInfo]:
        return iter([session.info for session in self._by_id.values()])

    def get(self, session: str) -> SessionInfo | None:
        """The session, or None where it is gone."""
        found = self._by_id.get(session)
        return found.info if found else None

    def open(
        self,
        session: str,
        *,
        name: str,
        ttl_s: float | None,
        behavior: Behavior,
        lock_delay_s: float,
        index: int,
        now_s: float,
    ) -> bool:
        """Add a session; True where the first end has come nearer by it."""
        info = SessionInfo(session, name, behavior, ttl_s, lock_delay_s, index)
        ends_s = None if ttl_s is None else now_s + GRACE_FACTOR * ttl_s
        self._by_id[session] = _Session(info, ends_s)
        if ends_s is None or (self._next_end_s is not None and self._next_end_s <= ends_s):
            return False
        self._next_end_s = ends_s
        return True

    def renew(self, session: str, now_s: float) -> bool:
        """Start a session's TTL anew."""
        found = self._by_id.get(session)
        if found is None:
            return False
        if found.info.ttl_s is not None:
            found.ends_s = now_s + GRACE_FACTOR * found.info.ttl_s
        return True

    def remove(self, session: str) -> SessionInfo | None:
        """Take a session out."""
        found = self._by_id.pop(session, None)
        return found.info if found else None

    def ended(self, now_s: float) -> list[str]:
        """The sessions whose time is over, the first one first."""
        if self._next_end_s is None or now_s < self._next_end_s:
            return []
        timed = sorted((s.ends_s, key) for key, s in self._by_id.items() if s.ends_s is not None)
        over = [key for ends_s, key in timed if ends_s <= now_s]
        self._next_end_s = timed[len(over)][0] if len(over) < len(timed) else None
        return over

    @property
    def next_end_s(self) -> float | None:
        """When to look again, in the caller's clock; None while no session can end by itself."""
        return self._next_end_s
