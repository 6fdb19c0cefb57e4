"""TFRecord's framing: length (8 bytes), its masked CRC32C (4), the content, its masked CRC32C (4), little-endian.

The checksum is google-crc32c: a wheel for every usual machine, the processor's own instruction inside, Apache's
licence, kept by Google for its storage clients. TensorFlow is not imported.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

from yurt.data.errors import DataError

try:
    from google_crc32c import extend as crc_extend
    from google_crc32c import value as crc
except ImportError as error:
    raise DataError("yurt.data needs google-crc32c", hint="pip install 'yurt[data]'") from error

HEADER_BYTES: Final = 12
FOOTER_BYTES: Final = 4
FRAME_BYTES: Final = HEADER_BYTES + FOOTER_BYTES
#: Protobuf reads no message of 2 GiB or more.
MOST_BYTES: Final = 2**31 - 1
_MASK_DELTA: Final = 0xA282EAD8
_HEADER: Final = struct.Struct("<QI")
_CRC: Final = struct.Struct("<I")


def masked(checksum: int) -> int:
    """A CRC32C as TFRecord stores it."""
    return ((checksum >> 15 | checksum << 17) + _MASK_DELTA) & 0xFFFFFFFF


def header(length: int) -> bytes:
    """The 12 bytes before a record of `length` bytes."""
    size = length.to_bytes(8, "little")
    return size + _CRC.pack(masked(crc(size)))


def length_in(head: bytes) -> int | None:
    """The length that a header of 12 bytes tells, None if it is no header."""
    if len(head) != HEADER_BYTES:
        return None
    length, checksum = _HEADER.unpack(head)
    return int(length) if masked(crc(head[:8])) == checksum else None


def frame(records: Iterable[bytes]) -> Iterator[bytes]:
    """The records with what stands before and after each."""
    headers: dict[int, bytes] = {}
    pack = _CRC.pack
    for record in records:
        size = len(record)
        head = headers.get(size)
        if head is None:
            if len(headers) > 4096:
                headers.clear()
            head = headers[size] = header(size)
        checksum = crc(record)
        yield head
        yield record
        yield pack(((checksum >> 15 | checksum << 17) + _MASK_DELTA) & 0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Broken:
    """Where framing is broken. `over` says that nothing behind it can be read."""

    kind: str
    message: str
    over: bool


def records(file: BinaryIO, *, verify: bool = True) -> Iterator[tuple[int, bytes | Broken]]:
    """Each record, or what is wrong with it, with the byte it begins at. Raises what reading the file raises."""
    read = file.read
    offset = 0
    while head := read(HEADER_BYTES):
        start = offset
        if len(head) < HEADER_BYTES:
            yield start, Broken("truncated", f"the file ends after {len(head)} of the 12 bytes of its header", True)
            return
        size, checksum = _HEADER.unpack(head)
        if masked(crc(head[:8])) != checksum:
            yield start, Broken("framing", "has no valid header, so nothing from here on can be read", True)
            return
        offset += size + FRAME_BYTES
        if size > MOST_BYTES:
            yield start, Broken("too-large", f"has {size:,} bytes; protobuf reads at most {MOST_BYTES:,}", False)
            if not _pass_over(file, size + FOOTER_BYTES):
                return
            continue
        content = read(size)
        foot = read(FOOTER_BYTES) if len(content) == size else b""
        if len(foot) < FOOTER_BYTES:
            have = HEADER_BYTES + len(content) + len(foot)
            yield start, Broken("truncated", f"the file ends after {have:,} of its {size + FRAME_BYTES:,} bytes", True)
            return
        if verify and masked(crc(content)) != _CRC.unpack(foot)[0]:
            yield start, Broken("checksum", "its content and its checksum do not agree", False)
            continue
        yield start, content


def _pass_over(file: BinaryIO, count: int) -> bool:
    """Leave out `count` bytes; False if there are fewer."""
    if file.seekable():
        target = file.tell() + count
        end = file.seek(0, os.SEEK_END)
        file.seek(min(target, end))
        return target <= end
    while count:
        step = len(file.read(min(count, 1 << 24)))
        if not step:
            return False
        count -= step
    return True


__all__ = [
    "FOOTER_BYTES",
    "FRAME_BYTES",
    "HEADER_BYTES",
    "MOST_BYTES",
    "Broken",
    "crc",
    "crc_extend",
    "frame",
    "header",
    "length_in",
    "masked",
    "records",
]
