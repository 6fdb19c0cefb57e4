"""Records that are all alike: one size, each feature's values at one place. Then nothing need be done a record.

So it is wherever a set is not compressed and its features are numbers of fixed shape, but for lists of int64 whose
varints take different numbers of bytes. A record with its framing is called a frame here::

    length 8 | its CRC 4 | tags, names, sizes | values | tags, names, sizes | values ... | CRC of the record 4
                           the same in each              the same in each

What is the same in each frame says how it is to be decoded, so frames that agree in it hold their values at the same
places. In a packed set the last record of a file may have fewer rows, and is a frame of another size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from yurt.data.decoding import NotAnExample, decode
from yurt.data.encoding import encode_packed
from yurt.data.framing import FOOTER_BYTES, FRAME_BYTES, HEADER_BYTES, frame, length_in
from yurt.data.schema import INTS, ROWS, Feature

if TYPE_CHECKING:
    from yurt.data.index import Layout

Frames = NDArray[np.uint8]
#: Frames that are compared in one go.
_BLOCK: Final = 4096
_MORE: Final = 0x80  # set in each byte of a varint but the last
_VARINT_BYTES: Final = 10


@dataclass(frozen=True)
class Stride:
    """`bytes` of a frame, and where in it each feature's values lie: `spans` are first byte and number of bytes."""

    bytes: int
    spans: Mapping[str, tuple[int, int]]

    def as_json(self) -> dict[str, Any]:
        """For the index."""
        return {"bytes": self.bytes, "spans": {name: list(span) for name, span in self.spans.items()}}

    @classmethod
    def from_json(cls, value: Any) -> Stride:
        """As `as_json` wrote it. Raises TypeError, ValueError, KeyError or AttributeError for anything else."""
        return cls(
            int(value["bytes"]), {str(name): (int(at), int(size)) for name, (at, size) in value["spans"].items()}
        )

    def suits(self, layout: Layout) -> bool:
        """Whether it can be that of such records: every feature has a place, and as many bytes as its values need."""
        if layout.compression != "none" or set(self.spans) != set(layout.schema):
            return False
        ends = [HEADER_BYTES]
        for name, (at, size) in sorted(self.spans.items(), key=lambda item: item[1]):
            if at < ends[-1] or not _may_have(layout.schema[name], layout.packed, size):
                return False
            ends.append(at + size)
        return ends[-1] <= self.bytes - FOOTER_BYTES

    def frames_in(self, size: int, rows: int, packed: int | None) -> int | None:
        """How many frames there are in a file of `size` bytes with `rows`; None if these do not go together."""
        frames, rest = divmod(rows, packed or 1)
        left = size - frames * self.bytes
        together = FRAME_BYTES < left < self.bytes if rest else left == 0
        return frames if together else None

    def holds(self, layout: Layout, frames: Frames, like: Frames) -> bool:
        """Whether `frames`, shape (n, bytes), are the same as the frame `like` in all but values and checksums."""
        if frames.shape[1] != self.bytes or len(like) != self.bytes:
            return False
        at = 0
        for name, (start, size) in sorted(self.spans.items(), key=lambda item: item[1]):
            if (frames[:, at:start] != like[at:start]).any():
                return False
            at = start + size
            feature = layout.schema[name]
            if layout.packed is None and feature.kind == INTS:
                more = np.full(size // feature.size, _MORE, np.uint8)
                more[-1] = 0
                if (frames[:, start:at] & _MORE != np.tile(more, feature.size)).any():
                    return False
        end = self.bytes - FOOTER_BYTES
        return not (frames[:, at:end] != like[at:end]).any()


def stride_of(layout: Layout, whole: bytes) -> Stride | None:
    """The stride of records that are like the one in this frame; None where such records are not all alike."""
    features = layout.schema.values()
    if layout.compression != "none" or any(f.variable or f.dtype == "string" for f in features):
        return None
    record = whole[HEADER_BYTES:-FOOTER_BYTES]
    try:
        found = decode(record)
    except NotAnExample:
        return None
    if set(found) != set(layout.schema) | ({ROWS} if layout.packed else set()):
        return None
    if any(len(found[name].spans) != 1 for name in layout.schema):
        return None
    places = {name: found[name].spans[0] for name in layout.schema}
    stride = Stride(len(whole), {name: (HEADER_BYTES + at, until - at) for name, (at, until) in places.items()})
    one = np.frombuffer(whole, np.uint8)
    return stride if stride.suits(layout) and stride.holds(layout, one[None], one) else None


def stride_in(path: Path, layout: Layout, rows: int) -> Stride | None:
    """The stride of a file of `rows`, whose every frame is looked at; None if there is none."""
    size = path.stat().st_size
    if layout.compression != "none" or not size:
        return None
    content = np.memmap(path, np.uint8, "r")
    length = length_in(content[:HEADER_BYTES].tobytes())
    if length is None:
        return None
    first = content[: length + FRAME_BYTES]
    stride = stride_of(layout, first.tobytes())
    count = stride.frames_in(size, rows, layout.packed) if stride else None
    if stride is None or not count:
        return None
    end = count * stride.bytes
    if end < size and length_in(content[end : end + HEADER_BYTES].tobytes()) != size - end - FRAME_BYTES:
        return None
    frames = content[:end].reshape(count, stride.bytes)
    blocks = (frames[at : at + _BLOCK] for at in range(0, count, _BLOCK))
    return stride if all(stride.holds(layout, block, first) for block in blocks) else None


class Watch:
    """Looks at the frames of one file while they are written: `stride` is theirs, None if they are not all alike."""

    def __init__(self, layout: Layout) -> None:
        self._layout, self._first = layout, b""
        self._over = False
        self.stride: Stride | None = None

    def look(self, frames: bytes, count: int) -> None:
        """At so many more frames."""
        if self._over or not count:
            return
        if not self._first:
            size = int.from_bytes(frames[:8], "little") + FRAME_BYTES
            self._first = frames[:size]
            self.stride = stride_of(self._layout, self._first)
        if self.stride is not None and len(frames) == count * self.stride.bytes:
            shaped = np.frombuffer(frames, np.uint8).reshape(count, -1)
            self._over = not self.stride.holds(self._layout, shaped, np.frombuffer(self._first, np.uint8))
        else:
            self._over = True
        if self._over:
            self.stride = None


@dataclass(frozen=True)
class Regular:
    """Files that have one stride: `sizes` in bytes by their numbers in the set.

    `ends` are the strides of packed records with fewer rows, which may be the last of a file.
    """

    stride: Stride
    sizes: Mapping[int, int]
    ends: tuple[Stride, ...] = ()


def regular(
    files: Sequence[Path], layout: Layout, rows: Sequence[int], looked_at: set[int], told: Stride | None
) -> Regular | None:
    """What is known of the files `looked_at`: each of their frames is looked at, unless the index has `told` a stride.

    None where they have no stride, or several.
    """
    sizes = {number: files[number].stat().st_size for number in sorted(looked_at)}
    stride = told if told and told.suits(layout) else None
    for number, size in sizes.items():
        if told:
            alike = stride is not None and stride.frames_in(size, rows[number], layout.packed) is not None
        else:
            own = stride_in(files[number], layout, rows[number])
            stride = stride or own
            alike = own is not None and own == stride
        if not alike:
            return None
    if stride is None:
        return None
    ends: dict[int, Stride] = {}
    for number, size in sizes.items():
        if rest := rows[number] % (layout.packed or 1):
            end = ends.get(rest) or _stride_of_rows(layout, rest)
            if end is None or size % stride.bytes != end.bytes:
                return None
            ends[rest] = end
    return Regular(stride, sizes, tuple(ends.values()))


def _stride_of_rows(layout: Layout, rows: int) -> Stride | None:
    """That of a packed record of so many rows, as Yurt writes it."""
    columns = {name: np.zeros((rows, *f.row_shape), f.numpy) for name, f in layout.schema.items()}
    frames = frame(encode_packed(layout.schema, columns, rows, rows))
    return stride_of(replace(layout, packed=rows), b"".join(frames))


def _may_have(feature: Feature, packed: int | None, size: int) -> bool:
    """Whether the values of a feature may take `size` bytes of a frame."""
    if feature.variable or feature.dtype == "string":
        return False
    if packed is None and feature.kind == INTS:
        return size % feature.size == 0 and 1 <= size // feature.size <= _VARINT_BYTES
    wire = feature.numpy.itemsize if packed or feature.stored == "raw" else 4
    return size == (packed or 1) * feature.size * wire
