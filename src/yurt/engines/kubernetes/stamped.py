"""A container's output as the kubelet gives it with timestamps: stamps taken off, and a place that can be found again.

A line is ``2026-12-01T13:00:00.123456789Z TEXT``; the stamp is of the line's first piece. `sinceTime` is good to the
second only, so that who goes on asks from the beginning of the second and passes over what was read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Final

_STAMP: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)) ?")
#: Bytes that a stamp and its space may have.
_STAMP_BYTES: Final = 37
#: Bytes of one line that are kept back until it is whole.
_LONG_LINE_BYTES: Final = 1 << 16


@dataclass(frozen=True, slots=True)
class Place:
    """A place in one container's output: `given` bytes, with the newline, of the `nth` line that bears `stamp`."""

    stamp: str = ""
    nth: int = 0
    given: int = 0

    @property
    def since(self) -> str | None:
        """For `sinceTime`; None at the beginning."""
        if not self.stamp:
            return None
        return datetime.fromtimestamp(_nanoseconds(self.stamp) // 10**9, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Stamped:
    """Takes the stamps off one stream that was asked for from `place.since` on, and passes over what is before `place`.

    `missing` once it is known that the line of `place` is not there any more: the kubelet gives the newest file of a
    log alone. `complaint` is what the kubelet says in the place of output.
    """

    def __init__(self, place: Place) -> None:
        self.place = place
        self.missing = False
        self.complaint = ""
        self._target: Place | None = place if place.stamp else None
        self._met = False
        self._at = Place()  # of what comes in; behind `place` while passing over
        self._rest = b""
        self._inside = False  # a line whose stamp is off and whose end has not come

    def feed(self, data: bytes) -> bytes:
        """Output that is new."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        given = [self._piece(line + b"\n") for line in lines]
        if len(self._rest) > _LONG_LINE_BYTES:
            given.append(self._piece(self._rest))
            self._rest = b""
        return b"".join(given)

    def flush(self) -> bytes:
        """The last line, which has no end; after the last `feed`."""
        rest, self._rest = self._rest, b""
        whole = self._inside or len(rest) >= _STAMP_BYTES or (_STAMP.match(rest) and b" " in rest)
        return self._piece(rest) if rest and whole else b""

    def _piece(self, data: bytes) -> bytes:
        if not self._inside:
            found = _STAMP.match(data)
            if found is None:
                self.complaint = " ".join(data.decode(errors="replace").split())[:300]
                return b""
            stamp = found[1].decode()
            data = data[found.end() :]
            self._at = Place(stamp, self._at.nth + 1 if _same_time(stamp, self._at.stamp) else 1)
        self._inside = not data.endswith(b"\n")
        passed = self._read_before(len(data))
        self._at = replace(self._at, given=self._at.given + len(data))
        if self._target is None:
            self.place = self._at
        return data[passed:]

    def _read_before(self, size: int) -> int:
        """How many of the next `size` bytes were given by an earlier stream."""
        if (target := self._target) is None:
            return 0
        now, then = (_nanoseconds(self._at.stamp), self._at.nth), (_nanoseconds(target.stamp), target.nth)
        if now < then:
            return size
        if now == then:
            self._met = True
            if (left := target.given - self._at.given) >= size:
                return size
            self._target = None
            return left
        self._target = None
        self.missing = not self._met
        return 0


def _same_time(one: str, other: str) -> bool:
    """Also of two hours of one instant: a node's clock may be put forward in spring."""
    same_second = one[17:29] == other[17:29]
    return one == other or (same_second and _nanoseconds(one) == _nanoseconds(other))


def _nanoseconds(stamp: str) -> int:
    """Since 1970."""
    main, _, fraction = stamp.partition(".")
    if not fraction:
        return int(datetime.fromisoformat(stamp).timestamp()) * 10**9
    digits = re.match(r"\d+", fraction)
    assert digits
    zone = fraction[digits.end() :]
    return int(datetime.fromisoformat(main + zone).timestamp()) * 10**9 + int(digits[0].ljust(9, "0"))
