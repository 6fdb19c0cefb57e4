"""Consul's JSON as the embedded store writes and reads it (the client's side of it: `answers.py`)."""

from __future__ import annotations

import json
from binascii import Error as Base64Error
from binascii import a2b_base64, b2a_base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from yurt.kv.durations import duration_text, parse_duration_s
from yurt.kv.messages import RefusedError, Reply
from yurt.kv.values import Op

if TYPE_CHECKING:
    from collections.abc import Iterable

    from yurt.kv.values import Behavior, Entry, SessionInfo, TxnResult, Verb

DEFAULT_LOCK_DELAY_S = 15.0


def json_reply(value: object, *, status: int = 200, index: int | None = None) -> Reply:
    """A value as JSON."""
    body = json.dumps(value, separators=(",", ":")).encode()
    return Reply(status, body, "application/json", index)


def entry_form(entry: Entry) -> dict[str, object]:
    """An entry as Consul shows it: an empty value is null, a free key has no Session."""
    form: dict[str, object] = {
        "LockIndex": entry.lock_index,
        "Key": entry.key,
        "Flags": entry.flags,
        "Value": b2a_base64(entry.value, newline=False).decode() if entry.value else None,
        "CreateIndex": entry.create_index,
        "ModifyIndex": entry.modify_index,
    }
    if entry.session is not None:
        form["Session"] = entry.session
    return form


def session_forms(sessions: Iterable[SessionInfo]) -> list[dict[str, object]]:
    """Sessions as Consul shows them: the lock delay is in nanoseconds."""
    return [
        {
            "ID": info.id,
            "Name": info.name,
            "Node": "",
            "LockDelay": round(info.lock_delay_s * 1e9),
            "Behavior": info.behavior,
            "TTL": "" if info.ttl_s is None else duration_text(info.ttl_s),
            "NodeChecks": [],
            "ServiceChecks": None,
            "CreateIndex": info.create_index,
            "ModifyIndex": info.create_index,
        }
        for info in sessions
    ]


def txn_reply(result: TxnResult) -> Reply:
    """200 with results or 409 with errors."""
    if result.ok:
        return json_reply({"Results": [{"KV": entry_form(e)} for e in result.entries], "Errors": None})
    errors = [{"OpIndex": e.op_index, "What": e.what} for e in result.errors]
    return json_reply({"Results": None, "Errors": errors}, status=409)


def parse_json(body: bytes) -> Any:
    """The body of a request. Raises RefusedError (400)."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise RefusedError(400, f"Request decode failed: {error}") from None


@dataclass(frozen=True, slots=True)
class SessionRequest:
    """What ``/v1/session/create`` was asked for. Node and checks are ignored: nothing here checks a node."""

    name: str
    ttl_s: float | None
    behavior: Behavior
    lock_delay_s: float


def parse_session(body: bytes) -> SessionRequest:
    """Raises RefusedError: 400 for a wrong shape, 500 for a wrong value, as Consul 1.8.7 does."""
    raw = parse_json(body) if body.strip() else {}
    if not isinstance(raw, dict):
        raise RefusedError(400, "Request decode failed: a session is an object")
    fields = {str(key).lower(): value for key, value in raw.items()}
    name, ttl, behavior = (fields.get(key) or "" for key in ("name", "ttl", "behavior"))
    if not all(isinstance(text, str) for text in (name, ttl, behavior)):
        raise RefusedError(400, "Request decode failed: Name, TTL and Behavior are texts")
    try:
        delay_s = _lock_delay_s(fields.get("lockdelay"))
    except ValueError as error:
        raise RefusedError(400, f"Request decode failed: {error}") from None
    if behavior not in ("", "release", "delete"):
        raise RefusedError(500, f"Invalid Behavior setting '{behavior}'")
    try:
        ttl_s = parse_duration_s(ttl) if ttl else None
    except ValueError as error:
        raise RefusedError(500, f"Session TTL '{ttl}' invalid: {error}") from None
    return SessionRequest(name, ttl_s or None, cast("Behavior", behavior or "release"), delay_s)


def _lock_delay_s(raw: object) -> float:
    """A duration text, or a number: of nanoseconds, but of seconds below 1000 (Consul 1.8.7)."""
    if raw is None:
        return DEFAULT_LOCK_DELAY_S
    if isinstance(raw, str):
        return parse_duration_s(raw)
    if isinstance(raw, int | float) and not isinstance(raw, bool) and 0 <= raw < 2**63:
        return float(raw) if raw < 1000 else raw / 1e9
    raise ValueError("LockDelay is no duration")


def parse_ops(body: bytes) -> list[Op]:
    """The operations of a transaction. Raises RefusedError (400)."""
    raw = parse_json(body)
    if not isinstance(raw, list):
        raise RefusedError(400, "Request decode failed: a transaction is a list")
    try:
        return [_op({str(k).lower(): v for k, v in item["KV"].items()}) for item in raw]
    except RefusedError:
        raise
    except (AttributeError, KeyError, TypeError, ValueError, Base64Error):
        raise RefusedError(400, "Request decode failed: an operation is {KV: {Verb, Key, Value, Index, ...}}") from None


def _op(form: dict[str, Any]) -> Op:
    verb, key = form["verb"], form.get("key", "")
    value, session = form.get("value") or "", form.get("session") or None
    if not all(isinstance(text, str) for text in (verb, key, value, session or "")):
        raise ValueError(form)
    numbers = [form.get("index") or 0, form.get("flags") or 0]
    if not all(isinstance(n, int) and 0 <= n < 2**64 for n in numbers):
        raise ValueError(form)
    return Op(cast("Verb", verb), key, a2b_base64(value), numbers[0], session, numbers[1])
