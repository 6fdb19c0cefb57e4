"""One execution of the task after another: start it, watch its output, stop it in time, say how it ended."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from yurt.agent.memory import OutOfMemoryWatch
from yurt.agent.output import Output
from yurt.agent.process import TaskProcess, reap_orphans
from yurt.agent.verdicts import classify
from yurt.contract.state import Exit


class Execution:
    """The task's process, from its start until its `Exit` is known.

    `report` is called in another thread with a function; call that in the main thread to get the `Exit`, or None
    if it was of an earlier process.
    """

    def __init__(self, output: Output, report: Callable[[Callable[[], Exit | None]], None]) -> None:
        self._output = output
        self._report = report
        self._process: TaskProcess | None = None
        self._pump: threading.Thread | None = None
        self._memory = OutOfMemoryWatch()
        self._kill_at: float | None = None
        self._stopping = False
        self.attempt = -1

    @property
    def alive(self) -> bool:
        """Whether there is a process whose end has not been taken note of."""
        return self._process is not None

    @property
    def kill_in_s(self) -> float | None:
        """Seconds until `tick` must be called."""
        return None if self._kill_at is None else self._kill_at - time.monotonic()

    def start(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str],
        folder: str,
        cpus: Sequence[int] | None,
        mark: str,
        attempt: int,
    ) -> int | Exit:
        """The process id, or how it ended where it could not even be executed."""
        self.attempt = attempt
        self._output.forget()
        self._memory = OutOfMemoryWatch()
        try:
            self._process = TaskProcess(
                command,
                environment=environment,
                folder=folder,
                cpus=cpus,
                mark=mark,
                on_exit=lambda process, code: self._report(lambda: self._exited(process, code)),
            )
        except OSError as error:
            missing = isinstance(error, FileNotFoundError)
            message = f"{command[0]}: {error.strerror or error}"
            return Exit(code=127 if missing else 126, reason="start", at=time.time(), attempt=attempt, message=message)
        self._pump = self._output.pump(self._process.output_fd)
        return self._process.pid

    def stop(self, grace_s: float) -> None:
        """SIGTERM now, SIGKILL after the grace time; asked again with less, the less holds."""
        if self._process is None:
            return
        kill_at = time.monotonic() + grace_s
        if not self._stopping:
            self._stopping = True
            self._kill_at = kill_at
            self._process.signal(signal.SIGTERM)
            self._process.signal(signal.SIGCONT)  # a suspended process would not hear it
        elif self._kill_at is not None:
            self._kill_at = min(self._kill_at, kill_at)
        self.tick()

    def tick(self) -> None:
        """Kill what has not ended within its grace time; collect orphans of the task that have ended."""
        if self._process:
            reap_orphans(but=self._process.pid)
        if self._process and self._kill_at is not None and time.monotonic() >= self._kill_at:
            self._kill_at = None
            self._process.kill()

    def signal(self, number: int) -> None:
        """Pass a signal on."""
        if self._process:
            self._process.signal(number)

    def _exited(self, process: TaskProcess, returncode: int) -> Exit | None:
        if process is not self._process:
            return None
        if self._pump:
            self._pump.join(timeout=2)
            if not self._pump.is_alive():
                process.close()
        reap_orphans()
        end = classify(
            returncode,
            stopped=self._stopping,
            out_of_memory=self._memory.grew(),
            child_out_of_memory=self._memory.grew_here(),
            lines=self._output.last_lines(),
            attempt=self.attempt,
        )
        self._process, self._pump, self._kill_at, self._stopping = None, None, None, False
        return end


def write_whole(path: str, text: str) -> None:
    """Write a file so that no reader sees half of it."""
    part = f"{path}.part"
    with open(part, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(part, path)
