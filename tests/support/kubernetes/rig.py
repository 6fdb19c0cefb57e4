"""A rig: one cluster of this machine's own, by name. Several live side by side.

All that it runs is in places (see place.py), so that it goes at once and whole, also when whoever raised it was killed: its
folder records which processes it lives by, and who raised it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.kubernetes import binaries, operator
from tests.support.kubernetes.control import ControlPlane
from tests.support.kubernetes.link import Link
from tests.support.kubernetes.missing import missing
from tests.support.kubernetes.node import Node
from tests.support.kubernetes.place import Place, wait_until


@dataclass(frozen=True)
class Rig:
    """The rig of this name, up or not."""

    name: str

    @property
    def folder(self) -> Path:
        return binaries.home() / "rigs" / self.name

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def control(self) -> ControlPlane:
        return ControlPlane(self.folder, binaries.build())

    def check_up(self) -> None:
        """Raises RuntimeError where it is not."""
        if not self.kubeconfig.exists():
            names = ", ".join(each.name for each in all_rigs()) or "none"
            raise RuntimeError(f"there is no rig {self.name} (there is: {names})")

    @property
    def nodes(self) -> list[Node]:
        """All of them, also those that are dead now."""
        numbers = sorted(int(each.name.removeprefix("node")) for each in self.folder.glob("node*"))
        return [self._node(number) for number in numbers]

    def _node_that_is_there(self, number: int) -> Node:
        if number not in {each.number for each in self.nodes}:
            raise RuntimeError(f"the rig {self.name} has no node{number}")
        return self._node(number)

    def _node(self, number: int) -> Node:
        return Node(number, self.name, self.folder, Place("control", self.folder / "control"), binaries.build())

    def up(self, nodes: int = 2, *, owner: int | None = None) -> None:
        """Until all nodes are ready. With an owner (a process of this machine) it may be taken down once that has ended.

        Raises RuntimeError with what did not come up; nothing is left then but its logs' last lines in the message.
        """
        if self.folder.exists():
            raise RuntimeError(f"the rig {self.name} is up already, or was not taken down")
        if lacking := missing():
            raise RuntimeError(lacking)
        self.folder.mkdir(parents=True)
        try:
            if owner is not None:
                (self.folder / "owner").write_text(f"{owner} {_start_of(owner)}")
            self.control.start()
            for number in range(1, nodes + 1):
                self._node(number).start()
            for node in self.nodes:
                self._wait_ready(node)
        except BaseException:
            self.down()
            raise

    def _wait_ready(self, node: Node) -> None:
        def ready() -> bool:
            return self.control.kubectl("get", "node", node.name, "-o", READY) == "True"

        wait_until(ready, node.name, node.place.log / "kubelet")

    def load(self, image: Path) -> None:
        """Put an image, a file as `docker save` writes it, on every node that is alive."""
        for node in self.nodes:
            if node.place.first is not None:
                node.load(image)

    def install_operator(self) -> None:
        """The training operator, until its webhook answers."""
        operator.install(self.control.kubectl, binaries.build().operator_manifests, self.folder / "operator")

    def kill_node(self, number: int) -> None:
        """The node dies as a machine does. NotReady some ten seconds later."""
        self._node_that_is_there(number).kill()

    def revive_node(self, number: int) -> None:
        """Switch it on again, until it is ready."""
        node = self._node_that_is_there(number)
        if node.place.first is not None:
            raise RuntimeError(f"{node.name} is not dead")
        node.start()
        self._wait_ready(node)

    @contextmanager
    def no_api_server(self) -> Iterator[None]:
        """The API server is gone as long as this lasts, and ready again afterwards."""
        self.control.place.end("api-server", mercy_s=1)
        try:
            yield
        finally:
            self.control.start_api_server()

    def down(self) -> None:
        """End it and remove what it had. Fine too where there is little or nothing of it."""
        for node in self.nodes:
            node.kill()
        control = Place("control", self.folder / "control")
        if control.first is not None and (self.folder / "link").exists():
            Link.of(self.folder).remove()
        control.kill()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def abandoned(self) -> bool:
        """Whether it was raised by a process that has ended."""
        owner = self.folder / "owner"
        if not owner.exists():
            return False
        pid, start = owner.read_text().split()
        return _start_of(int(pid)) != start


READY = 'jsonpath={.status.conditions[?(@.type=="Ready")].status}'


def all_rigs() -> list[Rig]:
    """Those of this machine's cache folder, up or half gone."""
    return [Rig(each.name) for each in sorted((binaries.home() / "rigs").glob("*"))]


def sweep() -> None:
    """Take down what test runs have left that were killed."""
    for rig in all_rigs():
        if rig.abandoned:
            rig.down()


def _start_of(pid: int) -> str:
    try:
        return Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()[19]
    except (FileNotFoundError, ProcessLookupError):
        return "ended"
