"""Processes that never outlive the agent: started in a group of their own, stopped with all they started, reaped."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from yurt.contract.sweep import sweep

_PR_SET_PDEATHSIG: Final = 1
_PR_SET_CHILD_SUBREAPER: Final = 36

_prctl = ctypes.CDLL(None, use_errno=True).prctl


def become_subreaper() -> None:
    """Orphans of the task come to this agent, so that none escapes and none stays a zombie (Linux 3.4)."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def tied_to_parent(cpus: Sequence[int] | None = None) -> Callable[[], None]:
    """What a child does between fork and exec: die with this process (PR_SET_PDEATHSIG), and keep to its CPUs.

    Fork from the main thread: the kernel watches the thread that forked, not the process.
    """
    parent = os.getpid()

    def prepare() -> None:
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(137)  # the agent died between fork and prctl
        if cpus:
            os.sched_setaffinity(0, cpus)

    return prepare


class TaskProcess:
    """One execution of a task's command.

    It leads a session and a process group of its own: no terminal reaches it, and a signal to the group reaches
    its children. `on_exit` is called in another thread with subprocess's return code, once nothing is left of it.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: str,
        cpus: Sequence[int] | None,
        mark: str,
        on_exit: Callable[[TaskProcess, int], None],
    ) -> None:
        """Raises OSError where the command cannot be executed."""
        self._mark = mark
        self._popen = subprocess.Popen(
            list(command),
            env=dict(environment),
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=tied_to_parent(cpus),  # noqa: PLW1509 - it only makes system calls
        )
        assert self._popen.stdout is not None
        self.output_fd: int = self._popen.stdout.fileno()
        self.pid: int = self._popen.pid
        self._on_exit = on_exit
        threading.Thread(target=self._wait, name="wait", daemon=True).start()

    def _wait(self) -> None:
        code = self._popen.wait()
        self._kill_rest()
        self._on_exit(self, code)

    def signal(self, number: int) -> None:
        """Send a signal to the process and its group."""
        try:
            os.killpg(self.pid, number)
        except OSError:
            pass  # it is gone

    def kill(self) -> None:
        """SIGKILL to the process, its group and everything that carries its mark."""
        self._kill_rest()

    def _kill_rest(self) -> None:
        """End what the process left behind: its group, and descendants that left the group."""
        self.signal(signal.SIGKILL)
        sweep(self._mark)

    def close(self) -> None:
        """Give back the pipe."""
        assert self._popen.stdout is not None
        self._popen.stdout.close()


def reap_orphans(but: int | None = None) -> None:
    """Collect ended orphans that came to this agent, until it is the turn of the child `but`.

    Only while no other child of our own is waited for elsewhere.
    """
    try:
        while ended := os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            if ended.si_pid == but:
                return
            os.waitpid(ended.si_pid, os.WNOHANG)
    except OSError:
        pass  # no children
