"""A place to run a node or the control plane in, as on a machine of its own: processes, mounts and network that end together.

A place is a process (`pause`) that is the first one of its own PID, mount and network namespaces. Killing it is what a
machine's power cut is: the kernel ends every process in it, and with the last one go mounts, bridges, firewall rules and ports.
Only its folder is left. Nothing of it can meet what this machine, or another rig, has under the same path, port or name.
"""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

#: A kubelet sets these for its whole machine; in a place it finds them set, in files, and the machine keeps its own.
_TUNABLES: Final = {
    "kernel/keys/root_maxkeys": "1000000",
    "kernel/keys/root_maxbytes": "25000000",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
}
#: Nothing of whoever raises it gets in, a proxy or a kubeconfig.
_ENVIRONMENT: Final = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}


@dataclass(frozen=True)
class Place:
    """Its name, and the folder that it keeps when it is killed."""

    name: str
    folder: Path

    @property
    def log(self) -> Path:
        return self.folder / "log"

    @property
    def _record(self) -> Path:
        return self.folder / "first-process"

    def start(self, pause: Path, *, network_of: Place | None = None) -> None:
        """Make it: with a network of its own, or that of another place."""
        for each in ("log", "var-lib", "var-log", "tunables"):
            (self.folder / each).mkdir(parents=True, exist_ok=True)
        self._record.unlink(missing_ok=True)
        lines = [
            "set -e",
            # the /proc seen here is still the machine's: pid and start time in it name this process for good
            f"read -r me </proc/self/stat; echo $me >{self._record}.new",
            "mount -t proc proc /proc; mount -t tmpfs tmpfs /run; mkdir /run/netns",
            f"mount --bind {self.folder}/var-lib /var/lib; mount --bind {self.folder}/var-log /var/log",
        ]
        for path, value in _TUNABLES.items():
            file = self.folder / "tunables" / path.replace("/", ".")
            file.write_text(f"{value}\n")
            lines.append(f"mount --bind {file} /proc/sys/{path}")
        lines.append(f"mount --make-rshared /; mv {self._record}.new {self._record}; exec {pause}")
        enter = ["nsenter", f"--net=/proc/{network_of.first}/ns/net"] if network_of else []
        unshare = ["unshare", "--pid", "--mount", "--fork", "--kill-child", *([] if network_of else ["--net"])]
        log = self.log / "place"
        with log.open("wb") as file:
            command = ["setsid", "--fork", *enter, *unshare, "sh", "-c", "\n".join(lines)]
            subprocess.run(
                command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, cwd="/", env=_ENVIRONMENT, check=True
            )
        wait_until(self._record.exists, f"a place for {self.name}", log, within_s=20)

    @property
    def first(self) -> int | None:
        """The process that it lives by, as this machine numbers it; None where it has ended."""
        try:
            recorded = self._record.read_text().split()
            now = Path("/proc", recorded[0], "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError, IndexError):
            return None
        return int(recorded[0]) if now[19] == recorded[21] and now[0] not in "ZX" else None

    def kill(self) -> None:
        """Cut its power. Nothing of it runs when this returns."""
        if (first := self.first) is not None:
            os.kill(first, signal.SIGKILL)
        while self.first is not None:
            time.sleep(0.01)

    def run(self, *command: str | Path) -> str:
        """Run a command in it to its end. Raises RuntimeError with what it said where it fails."""
        enter = ["nsenter", "--target", str(self.first), "--pid", "--mount", "--net", "--"]
        done = subprocess.run(
            [*enter, *map(str, command)], capture_output=True, text=True, cwd="/", env=_ENVIRONMENT, check=False
        )
        if done.returncode:
            raise RuntimeError(
                f"{' '.join(map(str, command[:4]))} in {self.name}: {(done.stderr or done.stdout).strip()}"
            )
        return done.stdout

    def serve(self, name: str, *command: str | Path) -> None:
        """Start a process that stays; it has its log by this name, and `end` ends it."""
        words = shlex.join(map(str, command))
        line = f"echo $$ >/run/{name}.pid; exec {words} >>{shlex.quote(str(self.log / name))} 2>&1 </dev/null"
        self.run("setsid", "--fork", "sh", "-c", line)

    def end(self, name: str, *, mercy_s: int = 10) -> None:
        """End a process that `serve` started, as its owner would; without mercy after that many seconds."""
        wait = f"n=0; while kill -0 $pid; do sleep 0.1; n=$((n+1)); [ $n -lt {mercy_s}0 ] || kill -9 $pid; done"
        self.run("sh", "-c", f"read pid </run/{name}.pid; kill $pid; {wait} 2>/dev/null; rm /run/{name}.pid")


def wait_until(true: Callable[[], bool], what: str, log: Path, within_s: float = 60) -> None:
    """Raises RuntimeError with the last lines of the log where it does not become true."""
    end = time.monotonic() + within_s
    while True:
        try:
            if true():
                return
            problem = ""
        except RuntimeError as error:
            problem = f"{error}\n"
        if time.monotonic() > end:
            raise RuntimeError(f"{what} did not come in {within_s:.0f} s\n{problem}{_tail_of(log)}")
        time.sleep(0.1)


def _tail_of(log: Path, lines: int = 5) -> str:
    """The last lines of a log, for a message."""
    text: Sequence[str] = log.read_text(errors="replace").splitlines() if log.exists() else ["(no log)"]
    return "\n".join(text[-lines:])
