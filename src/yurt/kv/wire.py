"""One keep-alive HTTP/1.1 connection over a plain socket.

Why not `http.client`: the agent has to stay under 20 MB. Measured with Python 3.11, on top of socket, json
and dataclasses (12.9 MB), ``import http.client`` brings 6.1 MB: ssl and its libraries 4.2, email's parser and
urllib.parse 1.9; with ssl kept out of it by hand 1.9 are left, with this file nothing to speak of. It also
puts head and body into one send, and a call that is blocked here can be ended from another thread.

Speaks as much of HTTP as Consul 1.8.7 and the embedded store answer with: Content-Length, chunked, or
until the end of the connection. Redirects are answers like any other.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from yurt.kv.errors import StoreClosed, StoreRefused, StoreRejected, StoreTimeout, StoreUnreachable

if TYPE_CHECKING:
    import ssl

_HEAD_LIMIT_BYTES = 64 * 1024
_RECV_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    def text(self) -> str:
        """The body as one line of text, for a message."""
        return self.body.decode("utf-8", "replace").strip()


class _StaleError(Exception):
    """A connection that had served before ended before the first byte of this answer."""


class Connection:
    """A connection to one address, opened at the first call and again after it was lost.

    Used by one thread at a time. `close` may come from any thread and ends a call that is under way.
    """

    def __init__(self, host: str, port: int, tls: ssl.SSLContext | None, server_name: str) -> None:
        self._host, self._port = host, port
        self._tls, self._server_name = tls, server_name
        self._sock: socket.socket | None = None
        self._lock = threading.Lock()
        self._busy = False
        self._closed = False
        self._buffer = bytearray()
        self._deadline_s = 0.0

    @property
    def address(self) -> str:
        """``host:port``."""
        return f"[{self._host}]:{self._port}" if ":" in self._host else f"{self._host}:{self._port}"

    def exchange(self, request: bytes, *, timeout_s: float, idempotent: bool) -> Response:
        """Send one whole request, return its whole answer, within `timeout_s` for all of it.

        A kept connection that the peer has closed in the meantime is opened anew before anything is sent;
        where it breaks after the send, only an `idempotent` request is sent again, once.

        Raises StoreRefused, StoreTimeout, StoreUnreachable, StoreRejected (not HTTP) or StoreClosed.
        """
        with self._lock:
            if self._closed:
                raise StoreClosed("the connection to the key-value store was closed")
            self._busy = True
        keep = False
        try:
            self._deadline_s = time.monotonic() + timeout_s
            response = self._exchange_twice(request, again=idempotent)
            keep = response.headers.get("connection", "").lower() != "close"
            return response
        except OSError as error:
            if self._closed:
                raise StoreClosed("the connection to the key-value store was closed") from None
            raise self._explain(error, timeout_s) from error
        finally:
            with self._lock:
                self._busy = False
                if self._closed or not keep:
                    self._drop()

    def close(self) -> None:
        """End the connection for good; a call blocked in it raises StoreClosed at once. Never raises."""
        with self._lock:
            self._closed = True
            if not self._busy:
                self._drop()
            elif self._sock is not None:
                # Only shut down: closing the descriptor under a thread that polls it could hand its
                # number to somebody else's file. The thread itself drops it on its way out.
                try:
                    socket.socket.shutdown(self._sock, socket.SHUT_RDWR)  # not TLS's own farewell
                except OSError:
                    pass

    def __del__(self) -> None:
        sock = getattr(self, "_sock", None)
        if sock is not None:
            sock.close()

    def _drop(self) -> None:
        if self._sock is not None:
            self._sock.close()
            self._sock = None
        self._buffer.clear()

    def _exchange_twice(self, request: bytes, *, again: bool) -> Response:
        used = self._sock is not None
        if used and self._is_stale():
            with self._lock:
                self._drop()
            used = False
        try:
            return self._exchange_once(request, used=used)
        except _StaleError:
            with self._lock:
                self._drop()
            if not again:
                raise ConnectionResetError("the connection ended before the answer") from None
            return self._exchange_once(request, used=False)

    def _is_stale(self) -> bool:
        """Whether the idle socket is readable: between two calls that can only mean its end."""
        assert self._sock is not None
        poll = select.poll()
        poll.register(self._sock, select.POLLIN)
        return bool(poll.poll(0))

    def _exchange_once(self, request: bytes, *, used: bool) -> Response:
        if self._sock is None:
            self._connect()
        assert self._sock is not None
        try:
            self._sock.settimeout(self._left_s())
            self._sock.sendall(request)
        except TimeoutError:
            raise
        except OSError:
            # The peer may have answered and hung up before it took all of the body (413): read that.
            if used:
                raise _StaleError from None
        return self._read_response(used=used)

    def _connect(self) -> None:
        failure: OSError | None = None
        for family, kind, protocol, _, address in socket.getaddrinfo(self._host, self._port, type=socket.SOCK_STREAM):
            sock = socket.socket(family, kind, protocol)
            with self._lock:
                if self._closed:
                    sock.close()
                    raise ConnectionAbortedError("closed")
                self._sock = sock
            try:
                sock.settimeout(self._left_s())
                sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _watch_peer(sock)
                if self._tls is not None:
                    secure = self._tls.wrap_socket(sock, server_hostname=self._server_name)
                    with self._lock:
                        self._sock = secure
                return
            except OSError as error:
                failure = error
                with self._lock:
                    self._drop()
                if self._closed or isinstance(error, TimeoutError):
                    break
        raise failure or OSError("the name has no address")

    def _left_s(self) -> float:
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        return left_s

    def _more(self) -> bool:
        """Read what is there into the buffer; False at the end of the stream."""
        assert self._sock is not None
        self._sock.settimeout(self._left_s())
        data = self._sock.recv(_RECV_BYTES)
        self._buffer += data
        return bool(data)

    def _read_response(self, *, used: bool) -> Response:
        try:
            while True:
                status, headers = self._read_head()
                if status >= 200:  # 1xx announces the real answer
                    break
        except (ConnectionError, EOFError) as error:
            if used and not self._buffer:
                raise _StaleError from None
            raise ConnectionResetError(str(error)) from error
        if status in (204, 304):
            return Response(status, headers, b"")
        if "chunked" in headers.get("transfer-encoding", "").lower():
            return Response(status, headers, self._read_chunks())
        length = headers.get("content-length")
        if length is not None and length.isascii() and length.isdigit():
            return Response(status, headers, self._take(int(length)))
        headers["connection"] = "close"
        while self._more():
            pass
        return Response(status, headers, bytes(self._buffer))

    def _read_head(self) -> tuple[int, dict[str, str]]:
        while (end := self._buffer.find(b"\r\n\r\n")) < 0:
            if len(self._buffer) > _HEAD_LIMIT_BYTES:
                raise self._not_http()
            if not self._more():
                raise EOFError("the connection ended before the answer")
        lines = self._buffer[:end].decode("latin-1").split("\r\n")
        del self._buffer[: end + 4]
        version, _, rest = lines[0].partition(" ")
        if not version.startswith("HTTP/1.") or not rest[:3].isdigit():
            raise self._not_http()
        headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(":")
            headers[name.strip().lower()] = value.strip()
        if version == "HTTP/1.0":
            headers.setdefault("connection", "close")
        return int(rest[:3]), headers

    def _not_http(self) -> StoreRejected:
        return StoreRejected(f"what answers at {self.address} is not a Consul: it does not speak HTTP")

    def _take(self, size: int) -> bytes:
        while len(self._buffer) < size:
            if not self._more():
                raise ConnectionResetError("the connection ended inside the answer")
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _take_line(self) -> bytes:
        while (end := self._buffer.find(b"\r\n")) < 0:
            if len(self._buffer) > _HEAD_LIMIT_BYTES or not self._more():
                raise ConnectionResetError("the connection ended inside the answer")
        return self._take(end + 2)[:-2]

    def _read_chunks(self) -> bytes:
        parts = []
        while True:
            try:
                size = int(self._take_line().partition(b";")[0], 16)
            except ValueError:
                raise self._not_http() from None
            if size == 0:
                break
            parts.append(self._take(size))
            self._take_line()
        while self._take_line():  # trailers
            pass
        return b"".join(parts)

    def _explain(self, error: OSError, timeout_s: float) -> StoreRefused | StoreTimeout | StoreUnreachable:
        if isinstance(error, TimeoutError):
            return StoreTimeout(
                f"the key-value store at {self.address} gave no answer within {timeout_s:g} s",
                address=self.address,
            )
        if isinstance(error, ConnectionRefusedError):
            return StoreRefused(
                f"nobody listens at {self.address}, where the key-value store should be",
                address=self.address,
            )
        if isinstance(error, ConnectionError):
            return StoreRefused(
                f"the key-value store at {self.address} hung up without an answer", address=self.address
            )
        reason = error.strerror or str(error)
        return StoreUnreachable(
            f"the key-value store at {self.address} cannot be reached: {reason}", address=self.address
        )


def _watch_peer(sock: socket.socket) -> None:
    """Let the kernel find out within about a minute that the peer's machine is gone."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        option = getattr(socket, name, None)  # absent on other systems than Linux
        if option is not None:
            sock.setsockopt(socket.IPPROTO_TCP, option, value)
