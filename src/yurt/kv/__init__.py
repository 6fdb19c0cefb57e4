"""The key-value store: a client for Consul, and an embedded store that speaks the same subset.

The client's names are here. The embedded store is `yurt.kv.server.EmbeddedStore`, not imported with them:
most agents never need it.
"""

from yurt.kv.client import Store
from yurt.kv.errors import (
    SessionGone,
    StoreBusy,
    StoreClosed,
    StoreDenied,
    StoreRefused,
    StoreRejected,
    StoreTimeout,
    StoreTooLarge,
    StoreUnreachable,
)
from yurt.kv.retry import retrying
from yurt.kv.tls import TlsParams
from yurt.kv.values import Entry, Op, SessionInfo, Snapshot, TxnError, TxnResult
from yurt.kv.watch import StoreWatch

__all__ = [
    "Entry",
    "Op",
    "SessionGone",
    "SessionInfo",
    "Snapshot",
    "Store",
    "StoreBusy",
    "StoreClosed",
    "StoreDenied",
    "StoreRefused",
    "StoreRejected",
    "StoreTimeout",
    "StoreTooLarge",
    "StoreUnreachable",
    "StoreWatch",
    "TlsParams",
    "TxnError",
    "TxnResult",
    "retrying",
]
