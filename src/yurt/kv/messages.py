"""HTTP/1.1 messages as the embedded store reads and writes them: bytes in, bytes out, no sockets."""

from __future__ import annotations

from dataclasses import dataclass, field

from yurt.kv.paths import unquote

HEAD_LIMIT_BYTES = 16 * 1024
_REASONS = {
    200: "OK",
    301: "Moved Permanently",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    409: "Conflict",
    411: "Length Required",
    413: "Payload Too Large",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer. `index` becomes ``X-Consul-Index``; `last` ends the connection after it."""

    status: int
    body: bytes = b""
    content_type: str = "text/plain; charset=utf-8"
    index: int | None = None
    last: bool = False

    def to_bytes(self) -> bytes:
        """Head and body, for one send."""
        lines = [
            f"HTTP/1.1 {self.status} {_REASONS.get(self.status, 'Error')}",
            f"Content-Type: {self.content_type}",
            f"Content-Length: {len(self.body)}",
        ]
        if self.index is not None:
            lines.append(f"X-Consul-Index: {self.index}")
        if self.last:
            lines.append("Connection: close")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("ascii") + self.body


class RefusedError(Exception):
    """The request is answered with `reply` and not looked at further."""

    def __init__(self, status: int, text: str, *, last: bool = False) -> None:
        super().__init__(text)
        self.reply = Reply(status, text.encode(), last=last)


@dataclass(frozen=True, slots=True)
class Head:
    """Everything before the body. `path` is decoded; a query name without a value has an empty text."""

    method: str
    path: str
    query: dict[str, str]
    headers: dict[str, str] = field(repr=False)
    length_bytes: int
    keep_alive: bool
    expects_continue: bool


def take_head(buffer: bytearray) -> Head | None:
    """Take the head of a request off the buffer; None while it is not all there.

    Raises RefusedError for what is no HTTP/1.x request or too long; the connection is then of no more use.
    """
    while buffer[:2] == b"\r\n":  # allowed between two requests
        del buffer[:2]
    end = buffer.find(b"\r\n\r\n")
    if end > HEAD_LIMIT_BYTES or (end < 0 and len(buffer) > HEAD_LIMIT_BYTES):
        raise RefusedError(431, "the head of the request is too long", last=True)
    if end < 0:
        if buffer and not (65 <= buffer[0] <= 90):  # no method begins like this: TLS, or noise
            raise RefusedError(400, "not an HTTP request", last=True)
        return None
    lines = buffer[:end].decode("latin-1").split("\r\n")
    del buffer[: end + 4]
    parts = lines[0].split(" ")
    if len(parts) != 3 or not parts[2].startswith("HTTP/") or not parts[0].isalpha():
        raise RefusedError(400, "not an HTTP request", last=True)
    method, target, version = parts
    if version not in ("HTTP/1.1", "HTTP/1.0"):
        raise RefusedError(505, "HTTP/1.1 is spoken here", last=True)
    headers = _headers(lines[1:])
    if "transfer-encoding" in headers:
        raise RefusedError(411, "send a Content-Length", last=True)
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit() and len(length) < 16):
        raise RefusedError(400, "the Content-Length is no number", last=True)
    connection = headers.get("connection", "").lower()
    path, query = _target(target)
    return Head(
        method=method,
        path=path,
        query=query,
        headers=headers,
        length_bytes=int(length),
        keep_alive=connection == "keep-alive" if version == "HTTP/1.0" else connection != "close",
        expects_continue=headers.get("expect", "").lower() == "100-continue",
    )


def _headers(lines: list[str]) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if not colon or not name or name != name.strip():
            raise RefusedError(400, "a header without a name", last=True)
        name = name.lower()
        if name in headers and name in ("content-length", "x-consul-token", "authorization"):
            raise RefusedError(400, f"{name} is there twice", last=True)
        headers[name] = value.strip()
    return headers


def _target(target: str) -> tuple[str, dict[str, str]]:
    path, _, text = target.partition("?")
    try:
        if not path.startswith("/") or not target.isascii() or not target.isprintable():
            raise ValueError(target)  # noqa: TRY301 - one message for all
        query: dict[str, str] = {}
        for pair in text.split("&"):
            name, _, value = pair.partition("=")
            if name:
                query.setdefault(unquote(name), unquote(value.replace("+", " ")))
        return unquote(path), query
    except ValueError:
        raise RefusedError(400, "the path is malformed", last=True) from None
