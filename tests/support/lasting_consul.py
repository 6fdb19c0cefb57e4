"""A Consul that keeps its data on disk, so that it can be killed and come back as it was."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.conftest import free_ports
from tests.support.runs import wait_until
from yurt.errors import StoreError
from yurt.kv import Store


class LastingConsul:
    """One server on free ports of the loopback; not up yet when it is made."""

    def __init__(self, folder: Path) -> None:
        http, server, lan, wan = free_ports(4)
        self.address = f"http://127.0.0.1:{http}"
        self._log = folder / "consul.log"
        # A lone server with Consul's default timing needs 7 s to find itself a leader after a restart (1.8.7).
        self._command = [
            *(str(shutil.which("consul")), "agent", "-server", "-bootstrap", f"-data-dir={folder / 'consul'}"),
            *("-bind=127.0.0.1", "-client=127.0.0.1", "-log-level=warn", "-hcl=performance { raft_multiplier = 1 }"),
            *(f"-http-port={http}", f"-server-port={server}", f"-serf-lan-port={lan}", f"-serf-wan-port={wan}"),
            *("-dns-port=-1", "-grpc-port=-1", "-https-port=-1"),
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        wait_until(self._up, 30, "Consul")

    def kill(self) -> None:
        """At once, as a machine that loses its power."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def _up(self) -> bool:
        with Store(self.address, timeout_s=2) as store:
            try:
                return bool(store.leader()) and store.put("up", b"1")
            except StoreError:
                return False
