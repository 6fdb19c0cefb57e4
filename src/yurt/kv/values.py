"""The values that go in and out of a key-value store, and its limits.

Shared by the client, the state machine and the embedded server; imports nothing heavy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

VALUE_LIMIT_BYTES = 512 * 1024
"""The largest value (Consul 1.8.7, ``kv_max_value_size``), and the largest body of a transaction."""

TXN_LIMIT_OPS = 64
"""The most operations in one transaction (Consul 1.8.7)."""

WAIT_LIMIT_S = 600.0
"""The longest a blocking query may wait (Consul 1.8.7 cuts longer ones to this)."""

SESSION_TTL_MIN_S = 10.0
SESSION_TTL_MAX_S = 86400.0
"""The bounds of a session's TTL (Consul 1.8.7); outside of them it answers 500."""

LOCK_DELAY_MAX_S = 60.0
"""The longest lock delay; Consul 1.8.7 cuts longer ones to this."""

Behavior = Literal["release", "delete"]
"""What becomes of the keys that a session holds when it ends."""

Verb = Literal[
    "set",
    "cas",
    "delete",
    "delete-cas",
    "delete-tree",
    "get",
    "get-tree",
    "lock",
    "unlock",
    "check-index",
    "check-session",
    "check-not-exists",
]
"""What one operation of a transaction does, in Consul's words."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One key. `session` is the holder of its lock; `lock_index` counts how often it was acquired."""

    key: str
    value: bytes
    modify_index: int
    create_index: int
    lock_index: int = 0
    flags: int = 0
    session: str | None = None


class Snapshot(NamedTuple):
    """What a watch saw: hand `index` to the next one. Entries are in the order of their keys."""

    index: int  # type: ignore[assignment]  # hides tuple.index, which nobody misses here
    entries: tuple[Entry, ...]


@dataclass(frozen=True, slots=True)
class SessionInfo:
    """A living session. `ttl_s` is None for one without a TTL."""

    id: str
    name: str
    behavior: str
    ttl_s: float | None
    lock_delay_s: float
    create_index: int
    node: str = ""


@dataclass(frozen=True, slots=True)
class Op:
    """One operation of a transaction.

    `index` belongs to cas, delete-cas and check-index; `session` to lock, unlock and check-session;
    `value` and `flags` to set, cas, lock and unlock.
    """

    verb: Verb
    key: str
    value: bytes = b""
    index: int = 0
    session: str | None = None
    flags: int = 0


@dataclass(frozen=True, slots=True)
class TxnError:
    """Why operation number `op_index` (from 0) of a transaction failed, in the store's words."""

    op_index: int
    what: str


@dataclass(frozen=True, slots=True)
class TxnResult:
    """All or nothing: `entries` when it was applied, `errors` when it was not.

    Entries stand in the order of the operations. Those of get and get-tree carry values; those of
    writes and checks carry indexes and an empty value, deletes and check-not-exists yield none.
    """

    ok: bool
    entries: tuple[Entry, ...] = ()
    errors: tuple[TxnError, ...] = ()
