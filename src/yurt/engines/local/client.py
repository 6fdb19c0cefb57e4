"""Starts and ends agents as processes of this machine: the local engine's only I/O."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from yurt.engines.work_folder import mirror
from yurt.errors import EngineError


class AgentProcess:
    """One agent, a child of this process in a session of its own: no terminal's Ctrl-C or hang-up reaches it."""

    def __init__(self, agent: Mapping[str, Any]) -> None:
        """Raises EngineError where it cannot be started."""
        folder = Path(agent["folder"])
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "model").mkdir(exist_ok=True)
            mirror(Path(agent["files"]), folder / "work")
            with Path(agent["log"]).open("ab") as log:
                self._popen = subprocess.Popen(
                    agent["command"],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    cwd=folder,
                    start_new_session=True,
                )
            assert self._popen.stdin is not None
            with self._popen.stdin as pipe:
                pipe.write(agent["config"].encode())
        except BrokenPipeError:
            pass  # it has ended already: `poll` tells
        except OSError as error:
            raise EngineError(f"the agent of {agent['task']} could not be started: {error}") from error

    @property
    def pid(self) -> int:
        """The agent's process id."""
        return self._popen.pid

    def poll(self) -> int | None:
        """Its exit code (negative: the signal that killed it), or None while it runs."""
        return self._popen.poll()

    def kill(self) -> None:
        """SIGKILL; its task dies with it."""
        try:
            os.kill(self._popen.pid, signal.SIGKILL)
        except OSError:
            pass

    def wait(self, timeout_s: float) -> bool:
        """Whether it ended within this time."""
        end = time.monotonic() + timeout_s
        while self._popen.poll() is None:
            if time.monotonic() > end:
                return False
            time.sleep(0.01)
        return True
