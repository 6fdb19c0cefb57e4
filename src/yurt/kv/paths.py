"""Keys and request paths.

`urllib.parse` would do the quoting for 0.7 MB of the agent's memory (measured); it takes three lines.
"""

from __future__ import annotations

_SAFE = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~/")


def quote(text: str) -> str:
    """Percent-encode all but unreserved characters and ``/``."""
    return "".join(chr(b) if b in _SAFE else f"%{b:02X}" for b in text.encode())


def check_key(key: str, *, prefix: bool = False) -> str:
    """Return `key` (or a prefix, which may be empty and may end anywhere).

    Raises ValueError for one that Consul 1.8.7 would answer with a redirect to another key (301): an
    empty segment (a leading ``/``, a ``//``), ``.`` and ``..``.
    """
    segments = key.split("/")
    if segments[-1] == "":
        segments.pop()  # "" and "a/" are fine
    if (not key and not prefix) or any(s in ("", ".", "..") for s in segments):
        raise ValueError(f"not a key: {key!r} (no empty segment, no leading '/', no '.' or '..')")
    return key


def unquote(text: str) -> str:
    """Undo `quote`. Raises ValueError for a broken escape or what is not UTF-8."""
    first, *rest = text.split("%")
    data = bytearray(first.encode())
    for part in rest:
        if len(part) < 2 or not part.isascii():
            raise ValueError(f"a broken escape in {text[:60]!r}")
        data += bytes.fromhex(part[:2]) + part[2:].encode()
    return data.decode()
