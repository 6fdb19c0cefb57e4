"""What can be wrong with a training script's use of this room."""

from __future__ import annotations

from yurt.errors import YurtError


class TrainingError(YurtError):
    """A checkpoint, a model or a call does not fit; training does not begin, or stops."""

    exit_code = 2

    def __str__(self) -> str:
        """The sentence with its hint: a script that fails shows a traceback, which ends with this."""
        return f"{super().__str__()} ({self.hint})" if self.hint else super().__str__()
