"""The client: Consul's key-value store and sessions, or the embedded store, over HTTP.

Every method raises the classes of `yurt.kv.errors`; which of them trying again can help is their
`retryable`. Facts about Consul are of version 1.8.7.
"""

from __future__ import annotations

import json
import threading
import weakref
from typing import TYPE_CHECKING, Any

from yurt.kv import answers, tls
from yurt.kv.durations import duration_text
from yurt.kv.environment import parse_address, settings_from_environment
from yurt.kv.errors import StoreClosed, StoreTooLarge
from yurt.kv.paths import check_key, quote
from yurt.kv.values import TXN_LIMIT_OPS, VALUE_LIMIT_BYTES, WAIT_LIMIT_S, Snapshot
from yurt.kv.watch import StoreWatch
from yurt.kv.wire import Connection, Response

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Self

    from yurt.kv.values import Behavior, Entry, Op, SessionInfo, TxnResult


_Names = list[str]  # inside of the class `list` is the method


class Store:
    """A key-value store at `address`: ``http://host:port`` or ``https://host:port``.

    `token` is Consul's ACL token or the embedded store's; `timeout_s` bounds every call, a watch gets it
    on top of its wait. Safe to share between threads: each has its own kept connection.

    Raises UsageError for an address that is none.
    """

    def __init__(
        self,
        address: str,
        token: str | None = None,
        *,
        tls_params: tls.TlsParams | None = None,
        timeout_s: float = 10.0,
        datacenter: str | None = None,
    ) -> None:
        secure, self._host, self._port = parse_address(address)
        params = tls_params or tls.TlsParams()
        self._tls = tls.context(params) if secure else None
        self._server_name = params.server_name or self._host
        self._token = token
        self._timeout_s = timeout_s
        self._query = {"dc": datacenter} if datacenter else {}
        head = f"Host: {self._host if ':' not in self._host else f'[{self._host}]'}:{self._port}\r\n"
        if token:
            if not token.isascii() or not token.isprintable():
                raise ValueError("a token is printable ASCII")
            head += f"X-Consul-Token: {token}\r\n"
        self._head = head
        self._own = threading.local()
        self._connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._closed = False

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None, *, timeout_s: float = 10.0) -> Self:
        """The store that ``CONSUL_HTTP_ADDR`` and its companions name, as Consul's own tools read them.

        Without them ``http://127.0.0.1:8500``. Raises UsageError for what cannot be used.
        """
        found = settings_from_environment(environ)
        return cls(found.address, found.token, tls_params=found.tls_params, timeout_s=timeout_s)

    @property
    def address(self) -> str:
        """Where the store is, with its scheme."""
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{'https' if self._tls else 'http'}://{host}:{self._port}"

    def close(self) -> None:
        """End all connections; calls blocked in any thread raise StoreClosed at once."""
        with self._lock:
            self._closed = True
            connections = list(self._connections)
        for connection in connections:
            connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # Keys

    def get(self, key: str) -> Entry | None:
        """The key, or None where there is none."""
        response = self._call("GET", self._kv(key), right=("read", key))
        entries = answers.entries(response)
        return entries[0] if entries else None

    def list(self, prefix: str) -> list[Entry]:
        """All keys that begin with `prefix`, in order. Consul leaves out, silently, what the token may not read."""
        path = self._kv(prefix, prefix=True)
        return answers.entries(self._call("GET", path, {"recurse": ""}, right=("read", prefix)))

    def keys(self, prefix: str) -> _Names:
        """The names alone of all keys that begin with `prefix`, in order."""
        path = self._kv(prefix, prefix=True)
        return answers.names(self._call("GET", path, {"keys": ""}, right=("read", prefix)))

    def watch(self, key: str, index: int, wait_s: float, recurse: bool = True) -> Snapshot:
        """Wait until `key` (with `recurse`: anything under that prefix) has changed since `index`.

        Returns the whole state after a change, or after `wait_s` (at most 600; Consul adds up to a
        sixteenth) without one; at once for index 0. The returned index is for the next call: 0 where
        Consul's went backwards, which means it was restored or replaced. A key or prefix that does not
        exist wakes on every write to the store. For a wait that can be ended alone, see `watcher`.
        """
        return self._watch(self._connection("watch"), key, index, wait_s, recurse=recurse)

    def watcher(self, key: str, *, recurse: bool = True) -> StoreWatch:
        """A watch with a connection and an index of its own, which another thread can close."""
        connection = self._open()

        def look(index: int, wait_s: float) -> Snapshot:
            return self._watch(connection, key, index, wait_s, recurse=recurse)

        return StoreWatch(look, connection.close)

    def put(self, key: str, value: bytes, *, cas: int | None = None, flags: int = 0) -> bool:
        """Set the key. With `cas` only if its modify index is still that, 0 meaning it does not exist.

        Returns whether it was set. The value that is there already changes no index and wakes nobody.
        """
        query = {"flags": str(flags)} if flags else {}
        if cas is not None:
            query["cas"] = str(cas)
        return self._put(key, value, query, idempotent=cas is None)

    def delete(self, key: str, *, cas: int | None = None) -> bool:
        """Delete the key; with `cas` only at that modify index (not 0). True also where there was none."""
        query = {} if cas is None else {"cas": str(cas)}
        path = self._kv(key)
        response = self._call("DELETE", path, query, right=("write", key), idempotent=cas is None)
        return answers.truth(response)

    def delete_prefix(self, prefix: str) -> None:
        """Delete all keys that begin with `prefix`; the empty prefix is refused with ValueError."""
        if not prefix:
            raise ValueError("an empty prefix would delete everything in the store")
        path = self._kv(prefix, prefix=True)
        self._call("DELETE", path, {"recurse": ""}, right=("write", prefix))

    def acquire(self, key: str, value: bytes, session: str) -> bool:
        """Lock the key for a session and set it; False where another holds it or a lock delay runs.

        Again by the holder it only sets the value. Raises SessionGone.
        """
        return self._put(key, value, {"acquire": session}, idempotent=True)

    def release(self, key: str, value: bytes, session: str) -> bool:
        """Unlock the key and set it; False where this session does not hold it."""
        return self._put(key, value, {"release": session}, idempotent=False)

    def txn(self, ops: Sequence[Op]) -> TxnResult:
        """Apply all operations at one index, or none.

        Raises StoreTooLarge before sending for more than 64 operations or 512 KiB of body: values count
        with a third on top, for base64. It is never split, since half of it is not what was asked.
        """
        if len(ops) > TXN_LIMIT_OPS:
            raise StoreTooLarge(f"a transaction of {len(ops)} operations is over the limit of {TXN_LIMIT_OPS}")
        body = answers.txn_body(ops)
        if len(body) > VALUE_LIMIT_BYTES:
            raise StoreTooLarge(
                f"a transaction of {len(body):,} bytes (base64 included) is over the limit of {VALUE_LIMIT_BYTES:,}"
            )
        right = ("write", ops[0].key) if ops else None
        reading = all(op.verb in ("get", "get-tree") or op.verb.startswith("check-") for op in ops)
        response = self._call("PUT", "/v1/txn", body=body, right=right, idempotent=reading, allowed=(200, 409))
        return answers.txn_result(response, right)

    # Sessions

    def session_create(
        self, ttl_s: float, *, name: str, behavior: Behavior = "release", lock_delay_s: float = 0.0
    ) -> str:
        """Open a session, return its id. It ends 2 x `ttl_s` (10 s to a day) after its last renewal.

        `behavior` says whether its keys are then released or deleted, `lock_delay_s` how long nobody can
        lock them afterwards. No health check of the node ends it: ``Checks: []`` is always sent.
        """
        body = {
            "Name": name,
            "TTL": duration_text(ttl_s),
            "Behavior": behavior,
            "LockDelay": duration_text(lock_delay_s),
            "Checks": [],
        }
        response = self._call(
            "PUT", "/v1/session/create", body=json.dumps(body).encode(), right=("session", ""), idempotent=False
        )
        return answers.session_id(response)

    def session_renew(self, session: str) -> bool:
        """Start the TTL anew; False where the session is gone."""
        path = f"/v1/session/renew/{quote(session)}"
        return self._call("PUT", path, right=("session", ""), allowed=(200, 404)).status == 200

    def session_destroy(self, session: str) -> None:
        """End the session now; an unknown one is no error."""
        self._call("PUT", f"/v1/session/destroy/{quote(session)}", right=("session", ""))

    def session_info(self, session: str) -> SessionInfo | None:
        """The session, or None where it is gone."""
        response = self._call("GET", f"/v1/session/info/{quote(session)}", right=("session", ""))
        found = answers.sessions(response)
        return found[0] if found else None

    def leader(self) -> str:
        """The address of Consul's leader, empty while it has none. A cheap sign of life."""
        return answers.text(self._call("GET", "/v1/status/leader"))

    # How

    def _kv(self, key: str, *, prefix: bool = False) -> str:
        return "/v1/kv/" + quote(check_key(key, prefix=prefix))

    def _put(self, key: str, value: bytes, query: dict[str, str], *, idempotent: bool) -> bool:
        path = self._kv(key)
        if len(value) > VALUE_LIMIT_BYTES:
            raise StoreTooLarge(f"the value of {key} has {len(value):,} bytes, the limit is {VALUE_LIMIT_BYTES:,}")
        response = self._call("PUT", path, query, body=value, right=("write", key), idempotent=idempotent)
        return answers.truth(response)

    def _watch(self, connection: Connection, key: str, index: int, wait_s: float, *, recurse: bool) -> Snapshot:
        wait_s = min(wait_s, WAIT_LIMIT_S)
        query = {"recurse": ""} if recurse else {}
        timeout_s = self._timeout_s
        if index > 0 and wait_s > 0:
            query["index"] = str(index)
            query["wait"] = duration_text(max(wait_s, 0.001))
            timeout_s += wait_s * 17 / 16
        response = self._call(
            "GET",
            self._kv(key, prefix=recurse),
            query,
            right=("read", key),
            connection=connection,
            timeout_s=timeout_s,
        )
        now = answers.index(response)
        return Snapshot(now if now >= index else 0, tuple(answers.entries(response)))

    def _call(
        self,
        method: str,
        path: str,
        query: dict[str, str] | None = None,
        *,
        body: bytes = b"",
        right: tuple[str, str] | None = None,
        idempotent: bool = True,
        allowed: tuple[int, ...] = (200,),
        connection: Connection | None = None,
        timeout_s: float | None = None,
    ) -> Response:
        pairs = {**(query or {}), **self._query}
        target = path + "?" * bool(pairs) + "&".join(f"{k}={quote(v)}" if v else k for k, v in pairs.items())
        length = f"Content-Length: {len(body)}\r\n" if method == "PUT" else ""
        head = f"{method} {target} HTTP/1.1\r\n{self._head}{length}\r\n"
        response = (connection or self._connection("call")).exchange(
            head.encode("ascii") + body,
            timeout_s=self._timeout_s if timeout_s is None else timeout_s,
            idempotent=idempotent,
        )
        if response.status in allowed or (method == "GET" and response.status == 404 and not response.body):
            return response
        raise answers.failure(response, method, target, self.address, right, known=self._token is not None)

    def _open(self) -> Connection:
        connection = Connection(self._host, self._port, self._tls, self._server_name)
        with self._lock:
            if self._closed:
                raise StoreClosed("this key-value store was closed")
            self._connections.add(connection)
        return connection

    def _connection(self, use: str) -> Connection:
        """The thread's own connection for calls or for watches."""
        found: Any = getattr(self._own, use, None)
        if found is None:
            found = self._open()
            setattr(self._own, use, found)
        connection: Connection = found
        return connection
