"""The link between this machine and a rig's own network: a pair of interfaces, and an address at each end.

Over it this machine reaches the API server, and pods reach servers of this machine. Nothing is forwarded any further.
"""

from __future__ import annotations

import fcntl
import json
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.support.kubernetes.binaries import home
from tests.support.kubernetes.place import Place


@dataclass(frozen=True)
class Link:
    """Number 0 to 255; the first that is free is taken."""

    number: int

    @classmethod
    def of(cls, rig: Path) -> Link:
        """That of the rig in this folder."""
        return cls(int((rig / "link").read_text()))

    @classmethod
    def make(cls, control: Place, rig: Path) -> Link:
        """Connect the network of this place."""
        with (home() / "link.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            taken = {each["ifname"] for each in json.loads(_ip("-json", "link"))}
            link = next(cls(number) for number in range(256) if cls(number).interface not in taken)
            there = ("peer", "name", "machine", "netns", str(control.first))
            _ip("link", "add", link.interface, "type", "veth", *there)
            (rig / "link").write_text(str(link.number))
        _ip("address", "add", f"{link.machine}/30", "dev", link.interface)
        _ip("link", "set", link.interface, "up")
        for line in (
            "link set lo up",
            f"address add {link.api}/30 dev machine",
            "link set machine up",
            f"route add default via {link.machine}",
        ):
            control.run("ip", *line.split())
        return link

    def remove(self) -> None:
        """While the network at its other end is alive; it would go with that too, a moment later."""
        _ip("link", "delete", self.interface)

    @property
    def interface(self) -> str:
        """Its end on this machine."""
        return f"yurt-rig{self.number}"

    @property
    def machine(self) -> str:
        return f"10.213.{self.number}.1"

    @property
    def api(self) -> str:
        return f"10.213.{self.number}.2"


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"ip {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout
