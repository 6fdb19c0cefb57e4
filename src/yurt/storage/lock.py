"""One publisher of a version at a time, in a folder."""

from __future__ import annotations

import errno
import fcntl
import os
import time
from pathlib import Path
from types import TracebackType
from typing import Self

from yurt.storage.errors import StorageFailed, from_os_error

_POLL_S = 0.05
_NO_LOCKS = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK, errno.ENOSYS, errno.EINVAL})


class Lock:
    """``with Lock(path, wait_s):`` holds an flock on `path`, and removes the file at the end.

    With `wait_s` 0 it tries once and `held` says whether it worked. A filesystem without locks lets everybody
    through. A holder that dies by any means releases it; its file stays until the next holder removes it.

    Raises:
        StorageFailed: unavailable when somebody else still holds it after `wait_s` (above 0).
    """

    def __init__(self, path: Path, wait_s: float) -> None:
        self._path = path
        self._wait_s = wait_s
        self._fd: int | None = None
        self.held = False

    def __enter__(self) -> Self:
        end = time.monotonic() + self._wait_s
        while not self._try():
            if self._wait_s == 0:
                return self
            if time.monotonic() >= end:
                raise StorageFailed(
                    f"another publisher still held {self._path} after {self._wait_s:g} s",
                    reason="unavailable",
                    hint="let it finish, then publish again",
                )
            time.sleep(_POLL_S)
        self.held = True
        return self

    def _try(self) -> bool:
        try:
            fd = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise from_os_error(error, "writing", self._path) from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                os.close(fd)
                if error.errno in (errno.EAGAIN, errno.EACCES):
                    return False
                raise from_os_error(error, "locking", self._path) from error
        try:  # the holder before us may have removed the file between our open and our flock
            same = os.fstat(fd).st_ino == self._path.stat().st_ino
        except FileNotFoundError:
            same = False
        if not same:
            os.close(fd)
            return False
        self._fd = fd
        return True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._fd is not None:
            self._path.unlink(missing_ok=True)
            os.close(self._fd)
            self._fd = None
            self.held = False
