"""Every exception of Yurt.

::

    YurtError                     exit code 6 unless said otherwise
    |-- JobError                  2  the job (file or Python value) is wrong; holds all its problems
    |-- UsageError                2  the command line is wrong
    |-- RunFailed                 1  the training failed
    |-- DeadlineExceeded          3  the start deadline or the run's deadline passed
    |-- Cancelled                 4  somebody stopped the run
    |-- PublishFailed             5  training succeeded, the model could not be put where the job says
    `-- LauncherError             6  Yurt or an engine failed, not the training
        |-- EngineError           6  an engine refused or could not be spoken to
        |-- RunNotFound           2  no such run
        `-- StoreError            6  the key-value store could not be spoken to (retryable)

A launcher error is never shown as a training error: the exit codes keep them apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


class YurtError(Exception):
    """The root: ``str(error)`` is one sentence for the person, `hint` says what would be right."""

    exit_code: ClassVar[int] = 6
    retryable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake in a job: where it is and what would be right.

    `line` and `column` count from 1 and are None for a job given as a Python value.
    `key` is the dotted path of the key, such as ``roles.worker.memory``.
    """

    key: str
    message: str
    hint: str | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        place = self.file or "job"
        if self.line is not None:
            place += f":{self.line}:{self.column}"
        key = f" {self.key}:" if self.key else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{place}:{key} {self.message}{hint}"


class JobError(YurtError):
    """A job with mistakes; `problems` holds all of them, in the order of the file."""

    exit_code = 2

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("\n".join(str(p) for p in problems))
        self.problems = problems


class UsageError(YurtError):
    """The command line asks for something that cannot be done."""

    exit_code = 2


class RunFailed(YurtError):
    """The training failed."""

    exit_code = 1


class DeadlineExceeded(YurtError):
    """The start deadline or the run's own deadline passed."""

    exit_code = 3


class Cancelled(YurtError):
    """Somebody stopped the run."""

    exit_code = 4


class PublishFailed(YurtError):
    """Training succeeded, but the model could not be put where the job says. The model is kept."""

    exit_code = 5


class LauncherError(YurtError):
    """Yurt or the engine failed, not the training."""


class EngineError(LauncherError):
    """An engine refused a request or could not be spoken to."""


class RunNotFound(LauncherError):
    """No run has this id."""

    exit_code = 2


class StoreError(LauncherError):
    """The key-value store could not be spoken to; trying again may help."""

    retryable = True
