"""What the store's answers mean: JSON into values, refusals into errors.

All of Consul's wire shapes are here (the server: in `forms.py`), so that a difference has one place.
"""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from typing import TYPE_CHECKING, Any

from yurt.kv.durations import parse_duration_s
from yurt.kv.errors import SessionGone, StoreBusy, StoreDenied, StoreRejected, StoreTooLarge
from yurt.kv.values import Entry, SessionInfo, TxnError, TxnResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from yurt.errors import StoreError
    from yurt.kv.values import Op
    from yurt.kv.wire import Response

Right = tuple[str, str]
"""The right a call needs: read or write and the key, or session and an empty text."""

_PERMANENT_500 = ("invalid", "missing", "must be", "bad request")
"""Consul 1.8.7 answers some mistakes of the caller with 500; every other 500 is worth another try."""


def _json(response: Response) -> Any:
    try:
        return json.loads(response.body)
    except ValueError:
        raise StoreRejected(
            f"the answer of the key-value store is not JSON: {response.text()[:80]!r}",
            hint="is the address that of a Consul?",
        ) from None


def _malformed() -> StoreRejected:
    return StoreRejected(
        "the answer of the key-value store has an unknown shape", hint="is the address that of a Consul?"
    )


def _entry(raw: dict[str, Any]) -> Entry:
    value = raw["Value"]
    return Entry(
        key=raw["Key"],
        value=a2b_base64(value) if value else b"",
        modify_index=raw["ModifyIndex"],
        create_index=raw["CreateIndex"],
        lock_index=raw["LockIndex"],
        flags=raw["Flags"],
        session=raw.get("Session"),
    )


def entries(response: Response) -> list[Entry]:
    """The entries of a read; none for 404."""
    if response.status == 404:
        return []
    try:
        return [_entry(raw) for raw in _json(response)]
    except (KeyError, TypeError, ValueError):
        raise _malformed() from None


def names(response: Response) -> list[str]:
    """The keys of ``?keys``; none for 404."""
    if response.status == 404:
        return []
    return [str(name) for name in _json(response)]


def truth(response: Response) -> bool:
    """``true`` or ``false``."""
    return bool(_json(response))


def text(response: Response) -> str:
    """A JSON string."""
    return str(_json(response))


def index(response: Response) -> int:
    """``X-Consul-Index``, at least 1: 0 would ask for no blocking at all."""
    try:
        return max(1, int(response.headers["x-consul-index"]))
    except (KeyError, ValueError):
        raise _malformed() from None


def session_id(response: Response) -> str:
    """The id of a session just made."""
    try:
        return str(_json(response)["ID"])
    except (KeyError, TypeError):
        raise _malformed() from None


def sessions(response: Response) -> list[SessionInfo]:
    """Living sessions."""
    try:
        return [
            SessionInfo(
                id=raw["ID"],
                name=raw["Name"],
                behavior=raw["Behavior"],
                ttl_s=parse_duration_s(raw["TTL"]) if raw["TTL"] else None,
                lock_delay_s=raw["LockDelay"] / 1e9,
                create_index=raw["CreateIndex"],
                node=raw["Node"],
            )
            for raw in _json(response)
        ]
    except (KeyError, TypeError, ValueError):
        raise _malformed() from None


def txn_body(ops: Sequence[Op]) -> bytes:
    """The request of a transaction."""
    listed = []
    for op in ops:
        form: dict[str, Any] = {"Verb": op.verb, "Key": op.key}
        if op.verb in ("set", "cas", "lock", "unlock"):
            form["Value"] = b2a_base64(op.value, newline=False).decode()
            if op.flags:
                form["Flags"] = op.flags
        if op.verb in ("cas", "delete-cas", "check-index"):
            form["Index"] = op.index
        if op.session is not None:
            form["Session"] = op.session
        listed.append({"KV": form})
    return json.dumps(listed, separators=(",", ":")).encode()


def txn_result(response: Response, right: Right | None) -> TxnResult:
    """The answer of a transaction, 200 or 409. Raises StoreDenied where an operation lacked a right."""
    raw = _json(response)
    try:
        errors = tuple(TxnError(e["OpIndex"], e["What"]) for e in raw.get("Errors") or ())
        found = tuple(_entry(r["KV"]) for r in raw.get("Results") or ())
    except (AttributeError, KeyError, TypeError, ValueError):
        raise _malformed() from None
    if any("Permission denied" in e.what for e in errors):
        raise _denied(right, known=True)
    return TxnResult(response.status == 200, found, errors)


def _denied(right: Right | None, *, known: bool) -> StoreDenied:
    if not known:
        return StoreDenied(
            "the key-value store asks for a token",
            hint="set CONSUL_HTTP_TOKEN or CONSUL_HTTP_TOKEN_FILE",
        )
    if right is None:
        return StoreDenied("the token has no right to this")
    policy, key = right
    if policy == "session":
        rule = 'session_prefix "" { policy = "write" }'
    else:
        top, slash, _ = key.partition("/")
        rule = f'key_prefix "{top}{slash}" {{ policy = "{policy}" }}'
    return StoreDenied(f"the token lacks a right: {rule}", hint="add this rule to a policy of the token")


def failure(
    response: Response, method: str, target: str, address: str, right: Right | None, *, known: bool
) -> StoreError:
    """The error that an answer stands for; `known` says whether a token was sent."""
    said = response.text()[:300]
    status = response.status
    lower = said.lower()
    if "acl not found" in lower and known:
        return StoreDenied(
            "the key-value store does not know this token",
            hint="it may have been deleted, or belong to another cluster",
        )
    if status in (401, 403) or "permission denied" in lower:
        return _denied(right, known=known)
    if status == 413:
        return StoreTooLarge(f"the key-value store refused the request as too large: {said}")
    if "invalid session" in said:  # in lower case: "Invalid Session TTL" is another matter
        return SessionGone("the session is gone: it expired or was destroyed")
    if status == 429 or status >= 500:
        permanent = status == 500 and any(word in lower for word in _PERMANENT_500)
        if not permanent:
            return StoreBusy(f"the key-value store at {address} cannot serve now ({status}): {said}")
    return StoreRejected(f"the key-value store refused {method} {target} ({status}): {said}")
