"""A real Nomad and a real Consul on this machine's loopback, for trying things out and for tests.

One server of each and as many Nomad clients as wanted, each a process of its own with its own ports and data, as on
separate machines; all in one folder, and nothing left when it ends. Facts are of Nomad 1.0.18 and Consul 1.8.7.
"""

from __future__ import annotations

import json
import resource
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from yurt.cluster.places import Install, find
from yurt.engines.nomad.address import NomadAddress
from yurt.engines.nomad.client import NomadClient
from yurt.errors import EngineError, StoreError
from yurt.kv.client import Store

#: Dynamic ports of Nomad (20000 to 32000) are divided among the clients, which know nothing of each other.
_FIRST_PORT: Final = 20000
_LAST_PORT: Final = 32000
_UP_S: Final = 60.0


@dataclass
class DevCluster:
    """Start it by ``with``, or `start` and `stop`.

    clients
        How many Nomad clients, each a node named ``node-1`` and so on.
    cpu_mhz, memory_mb
        What each node pretends to have.
    volumes
        Host volumes of every node: a folder of this machine by the name that jobs ask for.
    folder
        Where it lives; without it a temporary one. It is removed at the end.
    default_ports
        Take the usual ports (4646, 8500) where they are free, so that no variable has to be set.
    """

    clients: int = 2
    cpu_mhz: int = 4000
    memory_mb: int = 4096
    volumes: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    default_ports: bool = False
    nomad: str = ""
    consul: str = ""
    processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Until all nodes are ready. Raises EngineError, and leaves nothing then."""
        self._nomad_binary, self._consul_binary = find(Install.NOMAD), find(Install.CONSUL)
        self._own = Path(tempfile.mkdtemp(prefix="yurt-dev-", dir=self.folder))
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self) -> None:
        usual = self.default_ports
        http, server, serf = _ports(4646, 4647, 4648) if usual else _ports(0, 0, 0)
        consul_ports = _ports(8500, 8300, 8301, 8302) if usual else _ports(0, 0, 0, 0)
        self.consul = f"http://127.0.0.1:{consul_ports[0]}"
        self.nomad = f"http://127.0.0.1:{http}"
        self._server = server
        self._run("consul", self._consul_command(*consul_ports))
        self._wait("Consul", self._consul_up)
        self._write("server", {**self._common("server", http, server, serf), "server": _server()})
        self._run("server", self._nomad_command("server"))
        self._wait("Nomad", lambda: bool(self._ask().nodes() is not None))
        for number in range(1, self.clients + 1):
            self.start_client(f"node-{number}")
        self._wait("the nodes", lambda: self.ready() >= self.clients)

    def start_client(self, name: str) -> None:
        """Start the client of this name, also again after it was killed."""
        if not (self._own / f"{name}.json").exists():
            self._write(name, self._client(name))
        self._run(name, self._nomad_command(name))

    def start_server(self) -> None:
        """Start Nomad's server again after it was killed, with the data that it had."""
        self._run("server", self._nomad_command("server"))
        self._wait("Nomad", lambda: bool(self._ask().nodes() is not None))

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to one of its processes (``server``, ``consul``, ``node-1``) and wait for its end."""
        self.processes[name].send_signal(number)
        self.processes[name].wait()

    def ready(self) -> int:
        """How many nodes are ready, with their driver raw_exec healthy."""
        return sum(
            each["Status"] == "ready" and bool((each.get("Drivers") or {}).get("raw_exec", {}).get("Healthy"))
            for each in self._ask().nodes()
        )

    @property
    def environment(self) -> Mapping[str, str]:
        """What to export so that every tool finds it."""
        return {"NOMAD_ADDR": self.nomad, "CONSUL_HTTP_ADDR": self.consul}

    def stop(self) -> None:
        """End its jobs, its processes, and remove its folder."""
        if not hasattr(self, "_own"):
            return
        self._stop_jobs()
        for name in reversed(self.processes):
            if self.processes[name].poll() is None:
                self.processes[name].send_signal(signal.SIGINT)
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._unmount()
        shutil.rmtree(self._own, ignore_errors=True)

    def _stop_jobs(self) -> None:
        """While there is a server, so that its clients end what they run."""
        if "server" not in self.processes or self.processes["server"].poll() is not None:
            return
        client = self._ask()
        try:
            jobs = [each["ID"] for each in client.jobs() if each["Status"] != "dead"]
            for job in jobs:
                client.deregister(job)
            end = time.monotonic() + 15
            while time.monotonic() < end and any(
                each["ClientStatus"] in ("pending", "running") for job in jobs for each in client.allocations(job)[0]
            ):
                time.sleep(0.2)
        except EngineError:
            pass  # it is going down anyway

    def _unmount(self) -> None:
        """Give back what a client that was killed had mounted for its tasks."""
        mounted = [line.split()[1] for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
        for place in sorted((each for each in mounted if each.startswith(str(self._own))), reverse=True):
            subprocess.run(["umount", "-l", place], check=False, capture_output=True)

    def _ask(self) -> NomadClient:
        return NomadClient(NomadAddress("127.0.0.1", int(self.nomad.rpartition(":")[2])))

    def _consul_up(self) -> bool:
        with Store(self.consul, timeout_s=2) as store:
            return bool(store.leader())

    def _wait(self, what: str, up: Any) -> None:
        end = time.monotonic() + _UP_S
        while True:
            for name, process in self.processes.items():
                if process.poll() is not None:
                    raise EngineError(f"{name} of the cluster ended at once: {self._last_line(name)}")
            try:
                if up():
                    return
            except (EngineError, StoreError, OSError):
                pass  # not yet
            if time.monotonic() > end:
                told = self._last_line(list(self.processes)[-1])
                raise EngineError(f"{what} did not come up within {_UP_S:g} s: {told}")
            time.sleep(0.05)

    def _last_line(self, name: str) -> str:
        lines = (self._own / f"{name}.log").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        told = [line for line in lines if "rror" in line] or lines
        return told[-1].strip() if told else "it said nothing"

    def _run(self, name: str, command: list[str]) -> None:
        with (self._own / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _write(self, name: str, config: Mapping[str, Any]) -> None:
        (self._own / f"{name}.json").write_text(json.dumps(config, indent=1), encoding="utf-8")

    def _nomad_command(self, name: str) -> list[str]:
        return [self._nomad_binary, "agent", "-config", str(self._own / f"{name}.json")]

    def _consul_command(self, http: int, server: int, lan: int, wan: int) -> list[str]:
        ports = {"http": http, "server": server, "serf-lan": lan, "serf-wan": wan, "dns": -1, "grpc": -1, "https": -1}
        return [
            *(self._consul_binary, "agent", "-dev", "-bind=127.0.0.1", "-client=127.0.0.1", "-log-level=warn"),
            # All nodes' agents come from one address here; Consul takes 200 connections of one unless it is told.
            *("-hcl", f"limits {{ http_max_conns_per_client = {_connections()} }}"),
            *(f"-{name}-port={port}" for name, port in ports.items()),
        ]

    def _common(self, name: str, http: int, rpc: int, serf: int) -> dict[str, Any]:
        return {
            "name": name,
            "data_dir": str(self._own / name),
            "bind_addr": "127.0.0.1",
            # without them an agent outside of its own dev mode does not advertise a loopback
            "advertise": {kind: f"127.0.0.1:{port}" for kind, port in (("http", http), ("rpc", rpc), ("serf", serf))},
            "ports": {"http": http, "rpc": rpc, "serf": serf},
            "log_level": "WARN",
            "disable_update_check": True,
            "limits": {"http_max_conns_per_client": 1000},
            "consul": {"address": self.consul.removeprefix("http://"), "auto_advertise": False},
        }

    def _client(self, name: str) -> dict[str, Any]:
        http, rpc, serf = _ports(0, 0, 0)
        number = int(name.rpartition("-")[2]) - 1
        width = (_LAST_PORT - _FIRST_PORT) // max(1, self.clients)
        low, high = _FIRST_PORT + number * width, _FIRST_PORT + (number + 1) * width - 1
        reserved = [
            f"{first}-{last}" for first, last in ((_FIRST_PORT, low - 1), (high + 1, _LAST_PORT)) if first <= last
        ]
        return {
            **self._common(name, http, rpc, serf),
            "client": {
                "enabled": True,
                "servers": [f"127.0.0.1:{self._server}"],
                "network_interface": "lo",
                "cpu_total_compute": self.cpu_mhz,
                "memory_total_mb": self.memory_mb,
                "reserved": {"reserved_ports": ",".join(reserved)},
                "chroot_env": {place: place for place in _chroot()},
                "host_volume": [{name: [{"path": path}]} for name, path in self.volumes.items()],
            },
            "plugin": [
                {"raw_exec": [{"config": [{"enabled": True}]}]},
                {"docker": [{"config": [{"gc": [_docker_leaves()], "volumes": [{"enabled": True}]}]}]},
            ],
        }


def _connections() -> int:
    """As many as Consul may be told to take: it does not start with more than the system allows it files."""
    return min(10_000, resource.getrlimit(resource.RLIMIT_NOFILE)[1] // 2)


def _chroot() -> list[str]:
    """What a chroot of the exec driver holds: a shell, libraries, the system's Python.

    Nomad's own choice is all of /usr, which takes it 12 to 40 s a task: it makes a hard link of every file.
    """
    system = [str(place) for name in ("lib/*-linux-gnu", "usr/lib/python3*") for place in Path("/").glob(name)]
    return [place for place in ("/bin", "/usr/bin", "/lib64", "/etc", *system) if Path(place).exists()]


def _docker_leaves() -> dict[str, Any]:
    """What a client clears away of a Docker that is not its own: nothing.

    Else it removes this machine's images some minutes after their last task, and after five minutes the containers
    of all other clients, which share the daemon here.
    """
    return {"image": False, "dangling_containers": [{"enabled": False}]}


def _server() -> dict[str, Any]:
    return {"enabled": True, "bootstrap_expect": 1}


def _ports(*wanted: int) -> tuple[int, ...]:
    """The wanted ports if all are free; else free ones. 0 is any."""
    if all(wanted) and all(_free(port) for port in wanted):
        return wanted
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in wanted]
    try:
        return tuple(each.getsockname()[1] for each in sockets)
    finally:
        for each in sockets:
            each.close()


def _free(port: int) -> bool:
    try:
        socket.create_server(("127.0.0.1", port)).close()
    except OSError:
        return False
    return True
