"""A real terminal (pty) with `yurt` in it, as a person has it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
import threading

from tests.support.runs import YURT, Folder, wait_until


class Terminal:
    """Runs one command; `text` is all that it has written."""

    def __init__(self, folder: Folder, *arguments: object, rows: int = 24, columns: int = 120) -> None:
        command = [*YURT, *map(str, arguments)]
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder.path)
            os.execvpe(command[0], command, folder.env())
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self._data = b""
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        while True:
            try:
                data = os.read(self._fd, 65536)
            except OSError:
                return
            if not data:
                return
            self._data += data

    @property
    def text(self) -> str:
        return self._data.decode(errors="replace").replace("\r\n", "\n")

    @property
    def plain(self) -> str:
        """Without escapes."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.text)

    def until(self, text: str, within_s: float = 20) -> None:
        wait_until(lambda: text in self.plain, within_s, f"{text!r} on the terminal, which shows {self.plain!r}")

    def type(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def hang_up(self) -> None:
        """The window is closed: the reader goes, and the kernel sends SIGHUP."""
        fd = self._fd
        os.dup2(os.open(os.devnull, os.O_RDONLY), fd)

    def wait(self, within_s: float = 20) -> int:
        status = wait_until(
            lambda: os.waitpid(self.pid, os.WNOHANG)[1:] if self._ended() else None, within_s, "the end"
        )
        self._reader.join(5)
        return os.waitstatus_to_exitcode(status[0])

    def _ended(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
