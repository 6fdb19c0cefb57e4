"""A real Nomad whose nodes have networks of their own on this machine: two addresses, two firewalls, one kernel.

Each node's agent runs in a network namespace. A switch in another connects them with each other and with this machine,
where the server and Consul are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.cluster import need_cluster
from yurt.cluster.dev import DevCluster

#: Where distributions have the network plugins, and where Nomad looks for them unless it is told.
CNI_PATHS = ("/opt/cni/bin", "/usr/lib/cni", "/usr/libexec/cni")
NEEDED = ("bridge", "firewall", "host-local", "loopback", "portmap")


def cni_path() -> Path:
    """The folder of the network plugins; skips, by name of what is missing, where there are none."""
    for place in map(Path, CNI_PATHS):
        if all((place / name).exists() for name in NEEDED):
            return place
    pytest.skip("no CNI plugins on this machine: tasks in bridge networks are not tested")


@dataclass
class MachinesCluster(DevCluster):
    """`number` tells it from others on this machine; nodes are at 10.214.NUMBER.11 and so on."""

    number: int = 0
    plugins: Path = Path("/opt/cni/bin")

    def _start(self) -> None:
        self._connect()
        super()._start()

    def stop(self) -> None:
        """As ever, and without the networks."""
        try:
            super().stop()
        finally:
            self._disconnect()

    def address(self, name: str) -> str:
        """That of a node."""
        return f"10.214.{self.number}.{10 + int(name.rpartition('-')[2])}"

    @property
    def here(self) -> str:
        """This machine's, as every node reaches it."""
        return f"10.214.{self.number}.1"

    @property
    def environment(self) -> Mapping[str, str]:
        """What to export so that every tool finds it."""
        return {"NOMAD_ADDR": self.nomad, "CONSUL_HTTP_ADDR": self.consul.replace("127.0.0.1", self.here)}

    def _nodes(self) -> list[str]:
        return [f"node-{number}" for number in range(1, self.clients + 1)]

    def _space(self, name: str) -> str:
        return f"yurt-n{self.number}-{name.rpartition('-')[2]}"

    def _connect(self) -> None:
        """A switch in a space of its own, so that no firewall of this machine is between the nodes."""
        own, switch = self._space(""), self._space("switch")
        self._ip(f"netns add {switch}", f"-n {switch} link add lan type bridge", f"-n {switch} link set lan up")
        self._ip(f"link add {own} type veth peer name here netns {switch}")
        self._ip(f"address add {self.here}/24 dev {own}", f"link set {own} up")
        for name in self._nodes():
            space = self._space(name)
            self._ip(f"netns add {space}", f"-n {space} link set lo up")
            self._ip(f"-n {switch} link add {name} type veth peer name eth0 netns {space}")
            self._ip(f"-n {space} address add {self.address(name)}/24 dev eth0", f"-n {space} link set eth0 up")
            self._ip(f"-n {space} route add default via {self.here}")
        for port in ("here", *self._nodes()):
            self._ip(f"-n {switch} link set {port} master lan", f"-n {switch} link set {port} up")

    def _disconnect(self) -> None:
        for space in map(self._space, (*self._nodes(), "switch")):
            subprocess.run(["ip", "netns", "delete", space], check=False, capture_output=True)
        subprocess.run(["ip", "link", "delete", self._space("")], check=False, capture_output=True)

    def _ip(self, *lines: str) -> None:
        for line in lines:
            subprocess.run(["ip", *line.split()], check=True, capture_output=True)

    def _run(self, name: str, command: list[str]) -> None:
        if name.startswith("node-"):
            # not `ip netns exec`, which hides the control groups
            command = ["nsenter", f"--net=/run/netns/{self._space(name)}", *command]
        super()._run(name, command)

    def _consul_command(self, http: int, server: int, lan: int, wan: int) -> list[str]:
        plain = super()._consul_command(http, server, lan, wan)
        return ["-client=0.0.0.0" if word == "-client=127.0.0.1" else word for word in plain]

    def _common(self, name: str, http: int, rpc: int, serf: int) -> dict[str, Any]:
        plain = super()._common(name, http, rpc, serf)
        own = self.address(name) if name.startswith("node-") else self.here
        advertised = {kind: value.replace("127.0.0.1", own) for kind, value in plain["advertise"].items()}
        consul = {**plain["consul"], "address": self.consul.removeprefix("http://").replace("127.0.0.1", self.here)}
        return {**plain, "bind_addr": "0.0.0.0", "advertise": advertised, "consul": consul}

    def _client(self, name: str) -> dict[str, Any]:
        plain = super()._client(name)
        own = {"servers": [f"{self.here}:{self._server}"], "network_interface": "eth0", "cni_path": str(self.plugins)}
        return {**plain, "client": {**plain["client"], **own}}


@contextmanager
def kernel_named() -> Iterator[None]:
    """Nomad takes a kernel for one without bridges unless a file names the module (1.0.18): write it where none is."""
    place = Path("/lib/modules") / os.uname().release
    if place.exists() or Path("/proc/modules").exists() or not Path("/sys/module/bridge").exists():
        yield
        return
    made = next(each for each in (*reversed(place.parents), place) if not each.exists())
    place.mkdir(parents=True)
    (place / "modules.builtin").write_text("kernel/net/bridge/bridge.ko\n")
    try:
        yield
    finally:
        shutil.rmtree(made)


def machines(number: int, nodes: int = 2, **options: Any) -> Iterator[MachinesCluster]:
    """For as long as the tests that use it; skips them, by name of what is missing, where it cannot be."""
    need_cluster()
    plugins = cni_path()
    with kernel_named(), MachinesCluster(clients=nodes, number=number, plugins=plugins, **options) as cluster:
        yield cluster
