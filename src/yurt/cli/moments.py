"""Moments as people write them after ``--since``."""

from __future__ import annotations

import re
import time
from datetime import datetime

from yurt.errors import UsageError

_CLOCK = re.compile(r"(\d{1,2}):(\d{2})(?::(\d{2}))?")
_UNIX = re.compile(r"\d{9,}(\.\d+)?")


def moment(text: str, now: float | None = None) -> float:
    """Unix time of ``5m`` (ago), ``14:30`` (the last such), ``2026-01-31T14:30`` or ``1767225600``.

    Raises UsageError for anything else.
    """
    now = time.time() if now is None else now
    text = text.strip()
    if _UNIX.fullmatch(text):
        return float(text)
    try:
        if clock := _CLOCK.fullmatch(text):
            hour, minute, second = (int(part or 0) for part in clock.groups())
            today = (
                datetime.fromtimestamp(now).astimezone().replace(hour=hour, minute=minute, second=second, microsecond=0)
            )
            found = today.timestamp()
            return found if found <= now else found - 86_400
        return datetime.fromisoformat(text).timestamp()
    except ValueError:
        pass
    from yurt.job.units import read_duration

    try:
        return now - read_duration(text)
    except Exception as error:  # the job's reader raises pydantic's kind, whose text speaks of fields
        raise UsageError(
            f"--since {text!r} is no time", hint="write 5m (ago), 14:30, 2026-01-31T14:30 or a Unix time"
        ) from error
