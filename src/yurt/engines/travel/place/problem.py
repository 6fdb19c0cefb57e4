"""Why a node cannot be made ready for a task."""

from __future__ import annotations


class NotReady(Exception):
    """``str(error)`` is one sentence for a person, `hint` says what would be right."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint
