"""Plain, GZIP and ZLIB files: told apart by their content, read and written as streams.

A file is what its first bytes say, not its name: a plain TFRecord begins with a length and the checksum of that
length, which no other content has by chance.
"""

from __future__ import annotations

import io
import zlib
from pathlib import Path
from typing import BinaryIO, Final, Literal, Protocol, cast

from yurt.data.errors import DataError, guess
from yurt.data.framing import HEADER_BYTES, length_in

Compression = Literal["none", "gzip", "zlib"]
COMPRESSIONS: Final = ("none", "gzip", "zlib")
#: zlib's window bits for each: 31 writes GZIP's header, 15 ZLIB's own.
_WBITS: Final = {"gzip": 31, "zlib": 15}
_CHUNK: Final = 1 << 18


def named(value: str | None) -> Compression:
    """``"GZIP"``, ``"none"``, ``""`` or None as one of `COMPRESSIONS`. Raises DataError."""
    text = (value or "none").lower()
    if text not in COMPRESSIONS:
        raise DataError(f"{value!r} is no compression of TFRecord files", hint=guess(text, COMPRESSIONS))
    return cast("Compression", text)


def tensorflow_name(compression: Compression) -> str:
    """As TensorFlow calls it: "", "GZIP" or "ZLIB"."""
    return "" if compression == "none" else compression.upper()


def detect(path: Path) -> Compression | None:
    """What a file is by its content; None if it is no TFRecord file of any kind. Raises OSError."""
    with path.open("rb") as file:
        head = file.read(HEADER_BYTES)
    if length_in(head) is not None:
        return "none"
    if head[:2] == b"\x1f\x8b":
        return "gzip"
    if len(head) >= 2 and head[0] & 0x0F == 8 and (head[0] << 8 | head[1]) % 31 == 0 and _unpacks(path):
        return "zlib"
    return None


def _unpacks(path: Path) -> bool:
    try:
        with open_records(path, "zlib") as file:
            return length_in(file.read(HEADER_BYTES)) is not None
    except (OSError, EOFError, zlib.error):
        return False


def open_records(path: Path, compression: Compression) -> BinaryIO:
    """The unpacked content. Reading raises EOFError where a packed file is cut off, zlib.error where it is broken."""
    file = path.open("rb", buffering=_CHUNK)
    if compression == "none":
        return file
    return cast("BinaryIO", io.BufferedReader(_Inflating(file, _WBITS[compression]), _CHUNK))


class _Inflating(io.RawIOBase):
    """Unpacks one stream, or several after each other."""

    def __init__(self, file: BinaryIO, wbits: int) -> None:
        self._file, self._wbits = file, wbits
        self._engine = zlib.decompressobj(wbits)
        self._started = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: object) -> int:
        view = memoryview(cast("bytearray", buffer)).cast("B")
        while True:
            packed = self._engine.unconsumed_tail
            if self._engine.eof:
                packed = self._engine.unused_data or self._file.read(_CHUNK)
                if not packed:
                    return 0
                self._engine = zlib.decompressobj(self._wbits)
            elif not packed:
                packed = self._file.read(_CHUNK)
                if not packed and self._started:
                    raise EOFError("the packed stream is cut off")
                if not packed:
                    return 0
            self._started = True
            if made := self._engine.decompress(packed, len(view)):
                view[: len(made)] = made
                return len(made)

    def close(self) -> None:
        self._file.close()
        super().close()


class Packer(Protocol):
    """What zlib's compression objects do."""

    def compress(self, data: bytes, /) -> bytes:
        """Take some, give what is ready."""

    def flush(self) -> bytes:
        """Give the rest."""


class _Plain:
    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


def packer(compression: Compression, level: int) -> Packer:
    """Packs a stream; `level` is zlib's, 1 (fast) to 9 (small)."""
    return _Plain() if compression == "none" else zlib.compressobj(level, zlib.DEFLATED, _WBITS[compression])
