"""Why a model could not be published or read back: one exception, with a reason a program can act on."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING, Literal, TypeAlias

from yurt.errors import PublishFailed
from yurt.storage.redact import redact

if TYPE_CHECKING:
    from pathlib import Path

Reason: TypeAlias = Literal["no-model", "no-space", "denied", "not-found", "unavailable", "corrupt", "other"]
"""What kind of fault it was.

no-model: the script saved nothing. no-space: the place is full. denied: credentials or permissions.
not-found: the bucket, folder or version is not there. unavailable: the place does not answer; trying again
may help. corrupt: what arrived is not what was sent. other: the sentence says it.
"""

REASONS: tuple[Reason, ...] = (
    "no-model",
    "no-space",
    "denied",
    "not-found",
    "unavailable",
    "corrupt",
    "other",
)


class StorageFailed(PublishFailed):
    """A place for models could not be written or read; `reason` is one of `REASONS`.

    Both sentences are freed of secrets when the error is made, so it can be printed or stored as it is.
    """

    def __init__(self, message: str, *, reason: Reason, hint: str | None = None) -> None:
        super().__init__(redact(message), hint=None if hint is None else redact(hint))
        self.reason: Reason = reason


_BY_ERRNO: dict[int, tuple[Reason, str, str]] = {
    errno.ENOSPC: ("no-space", "no room left on device", "make room there, then publish again"),
    errno.EDQUOT: ("no-space", "the disk quota is used up", "make room there, then publish again"),
    errno.EFBIG: ("no-space", "the file is larger than this place allows", "raise the file size limit"),
    errno.EACCES: ("denied", "permission denied", "give this user the permission, or choose another output"),
    errno.EPERM: ("denied", "not permitted", "give this user the permission, or choose another output"),
    errno.EROFS: ("denied", "the filesystem is read-only", "choose an output that can be written to"),
    errno.ENOENT: ("not-found", "no such file or folder", "check the path"),
    errno.ENOTDIR: ("not-found", "a part of the path is a file, not a folder", "choose another output"),
    errno.EIO: ("unavailable", "input/output error", "check the disk or the mount, then publish again"),
    errno.ESTALE: ("unavailable", "the network filesystem lost this file", "check the mount, then publish again"),
    errno.ETIMEDOUT: ("unavailable", "the filesystem timed out", "check the mount, then publish again"),
    errno.ENAMETOOLONG: ("other", "the name is too long for this filesystem", "use shorter names in the model"),
}  # fmt: skip


def from_os_error(error: OSError, doing: str, where: Path | str, *, progress: str = "") -> StorageFailed:
    """The operating system's error as a sentence: ``<what happened> while <doing> <where> (<progress>)``."""
    known = _BY_ERRNO.get(error.errno or 0)
    if known is None:
        reason: Reason = "other"
        what, hint = (error.strerror or type(error).__name__), "see the message of the operating system"
    else:
        reason, what, hint = known
    tail = f" ({progress})" if progress else ""
    return StorageFailed(f"{what} while {doing} {where}{tail}", reason=reason, hint=hint)


def other_content(where: str) -> StorageFailed:
    """A version is there with another model; published versions never change."""
    return StorageFailed(
        f"{where} is already published with another model, and a published version never changes",
        reason="other",
        hint="what is there stays whole; publish under another version, or delete that one first",
    )


def megabytes(count: int) -> str:
    """A count of bytes for people: ``12.3 MB`` (10**6 bytes), or bytes below 0.1 MB."""
    return f"{count / 1e6:.1f} MB" if count >= 100_000 else f"{count} bytes"
