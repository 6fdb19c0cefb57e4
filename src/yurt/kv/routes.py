"""What each request to the embedded store does to the state, and its answer.

Status codes are those of Consul 1.8.7, but that a malformed number is 400 here where Consul says 500, and
that a key with an empty, ``.`` or ``..`` segment is 400 where Consul redirects to another key.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from yurt.errors import StoreError
from yurt.kv import forms
from yurt.kv.durations import parse_duration_s
from yurt.kv.errors import SessionGone, StoreTooLarge
from yurt.kv.messages import RefusedError, Reply
from yurt.kv.paths import check_key
from yurt.kv.values import WAIT_LIMIT_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from yurt.kv.messages import Head
    from yurt.kv.state import State
    from yurt.kv.values import Entry, Snapshot

DEFAULT_WAIT_S = 300.0
"""How long a blocking query without ``wait`` waits (Consul 1.8.7)."""

_KV = "/v1/kv/"
_INDEX_BITS = 64


@dataclass(frozen=True, slots=True)
class Wait:
    """A blocking query: answer with `render` of the state once it is past `index`, or after `wait_s`."""

    key: str
    recurse: bool
    index: int
    wait_s: float
    render: Callable[[Snapshot], Reply]
    memo: tuple[object, ...]
    """Waits of the same memo are answered by the same bytes."""


def handle(state: State, head: Head, body: bytes, leader: str) -> Reply | Wait:
    """Answer one request whose token was right. Raises nothing but what is a fault of this program."""
    try:
        return _handle(state, head, body, leader)
    except RefusedError as refused:
        return refused.reply
    except StoreTooLarge as error:
        return Reply(413, str(error).encode())
    except SessionGone:
        return Reply(500, f'invalid session "{head.query.get("acquire", "")}"'.encode())
    except StoreError as error:  # StoreRejected: Consul answers 500
        return Reply(500, str(error).encode())
    except ValueError as error:  # check_key
        return Reply(400, str(error).encode())


def _handle(state: State, head: Head, body: bytes, leader: str) -> Reply | Wait:
    path = head.path
    if path.startswith(_KV):
        key = path[len(_KV) :]
        match head.method:
            case "GET":
                return _read(state, key, head.query)
            case "PUT":
                return _put(state, key, head.query, body)
            case "DELETE":
                return _delete(state, key, head.query)
        raise RefusedError(405, f"method {head.method} not allowed")
    if path == "/v1/status/leader":
        _only(head, "GET")
        return forms.json_reply(leader)
    if path == "/v1/txn":
        _only(head, "PUT")
        return forms.txn_reply(state.txn(forms.parse_ops(body)))
    if path.startswith("/v1/session/"):
        verb, _, session = path.removeprefix("/v1/session/").partition("/")
        return _session(state, head, body, verb, session)
    raise RefusedError(404, "")


def _only(head: Head, method: str) -> None:
    if head.method != method:
        raise RefusedError(405, f"method {head.method} not allowed")


def _session(state: State, head: Head, body: bytes, verb: str, session: str) -> Reply:
    if verb == "create":
        _only(head, "PUT")
        asked = forms.parse_session(body)
        made = state.session_create(
            asked.ttl_s, name=asked.name, behavior=asked.behavior, lock_delay_s=asked.lock_delay_s
        )
        return forms.json_reply({"ID": made})
    if verb == "list":
        _only(head, "GET")
        return forms.json_reply(forms.session_forms(state.session_list()))
    if verb not in ("renew", "destroy", "info"):
        raise RefusedError(404, "")
    _only(head, "GET" if verb == "info" else "PUT")
    if not session:
        raise RefusedError(400, "Missing session")
    if verb == "destroy":
        state.session_destroy(session)
        return forms.json_reply(value=True)
    renewed = verb == "info" or state.session_renew(session)
    info = state.session_info(session)
    if not renewed:
        raise RefusedError(404, f"Session id '{session}' not found")
    return forms.json_reply(forms.session_forms([info] if info else []))


def _number(query: dict[str, str], name: str) -> int | None:
    text = query.get(name)
    if text is None:
        return None
    if not (text.isascii() and text.isdigit() and len(text) < 21 and int(text) < 2**_INDEX_BITS):
        raise RefusedError(400, f"Invalid {name}")
    return int(text)


def _read(state: State, key: str, query: dict[str, str]) -> Reply | Wait:
    recurse = "recurse" in query or "keys" in query
    if not key and not recurse:
        raise RefusedError(400, "Missing key name")
    check_key(key, prefix=recurse)
    index = _number(query, "index") or 0
    try:
        wait_s = parse_duration_s(query["wait"]) if query.get("wait") else 0.0
    except ValueError:
        raise RefusedError(400, "Invalid wait time") from None

    def render(found: Snapshot) -> Reply:
        if not found.entries:
            return Reply(404, index=found.index)
        if "keys" in query:
            return forms.json_reply(_names(found.entries, key, query.get("separator", "")), index=found.index)
        if "raw" in query and not recurse:
            return Reply(200, found.entries[0].value, "application/octet-stream", found.index)
        return forms.json_reply([forms.entry_form(e) for e in found.entries], index=found.index)

    if not index:
        return render(state.read(key, recurse=recurse))
    memo = (key, recurse, "keys" in query, "raw" in query, query.get("separator"))
    return Wait(key, recurse, index, min(wait_s or DEFAULT_WAIT_S, WAIT_LIMIT_S), render, memo)


def _names(entries: tuple[Entry, ...], prefix: str, separator: str) -> list[str]:
    """Names, each cut after the first separator beyond the prefix, once."""
    if not separator:
        return [entry.key for entry in entries]
    cut: dict[str, None] = {}
    for entry in entries:
        at = entry.key.find(separator, len(prefix))
        cut[entry.key if at < 0 else entry.key[: at + len(separator)]] = None
    return list(cut)


def _put(state: State, key: str, query: dict[str, str], body: bytes) -> Reply:
    if not key:
        raise RefusedError(400, "Missing key name")
    if sum(name in query for name in ("cas", "acquire", "release")) > 1:
        raise RefusedError(400, "Conflicting flags: cas, acquire and release exclude each other")
    flags = _number(query, "flags") or 0
    for name in ("acquire", "release"):
        if name in query:
            if not query[name]:
                raise RefusedError(500, "missing session")
            change = state.acquire if name == "acquire" else state.release
            return forms.json_reply(change(key, body, query[name], flags=flags))
    return forms.json_reply(state.put(key, body, cas=_number(query, "cas"), flags=flags))


def _delete(state: State, key: str, query: dict[str, str]) -> Reply:
    if "recurse" in query:
        if "cas" in query:
            raise RefusedError(400, "Conflicting flags: cas and recurse exclude each other")
        state.delete_prefix(key)
        return forms.json_reply(value=True)
    if not key:
        raise RefusedError(400, "Missing key name")
    return forms.json_reply(state.delete(key, cas=_number(query, "cas")))
