"""A node: Debian's containerd and a kubelet in a place of their own.

Facts are of containerd 1.6 and Kubernetes 1.36.3.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from tests.support.kubernetes import addresses
from tests.support.kubernetes.binaries import Binaries
from tests.support.kubernetes.containerd import Containerd, lay_disk
from tests.support.kubernetes.place import Place, wait_until

_CGROUPS: Final = Path("/sys/fs/cgroup")


@dataclass(frozen=True)
class Node:
    """Node `number` of a rig, from 1; `control` has the network, `cluster` the rig's folder."""

    number: int
    rig: str
    cluster: Path
    control: Place
    binaries: Binaries

    @property
    def name(self) -> str:
        return f"node{self.number}"

    @property
    def place(self) -> Place:
        return Place(self.name, self.cluster / self.name)

    @property
    def _cgroup(self) -> str:
        return f"yurt-{self.rig}-{self.name}"

    def start(self) -> None:
        """Switch it on: for the first time, or again after `kill` with what its disk has kept."""
        place = self.place
        if not place.folder.exists():
            lay_disk(place, self.binaries)
        place.start(self.binaries.pause, network_of=self.control)
        self._make_cgroup()
        place.run("ip", "address", "replace", f"{addresses.node(self.number)}/32", "dev", "lo")
        containerd = Containerd(place)
        containerd.start()
        (containerd.networks / "pods.conflist").write_text(json.dumps(self._pod_network()))
        (place.folder / "resolv.conf").write_text(f"nameserver {addresses.GATEWAY}\n")
        config = place.folder / "kubelet.json"
        config.write_text(json.dumps(self._kubelet(), indent=1))
        kubeconfig = self.cluster / "kubeconfig"
        place.serve("kubelet", self.binaries.part("kubelet"), "--config", config, "--kubeconfig", kubeconfig,
                    "--hostname-override", self.name, "--node-ip", addresses.node(self.number))  # fmt: skip

    def load(self, image: Path) -> None:
        """Put an image on it: a file as `docker save` writes it."""
        Containerd(self.place).load(image)

    def kill(self) -> None:
        """What a dead machine looks like: kubelet, containers and network gone at once."""
        self.place.kill()
        self._remove_cgroup()

    def _pod_network(self) -> dict[str, Any]:
        first, last = addresses.pods_of(self.number)
        pods = {"subnet": addresses.PODS, "rangeStart": first, "rangeEnd": last, "gateway": addresses.GATEWAY}
        everywhere = [{"dst": "0.0.0.0/0"}]
        ipam = {"type": "host-local", "dataDir": "/run/pod-addresses", "ranges": [[pods]], "routes": everywhere}
        bridge = {
            "type": "bridge",
            "bridge": "pods",
            "isGateway": True,
            "ipMasq": True,
            "hairpinMode": True,
            "ipam": ipam,
        }
        ports = {"type": "portmap", "capabilities": {"portMappings": True}}
        return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge, ports]}

    def _kubelet(self) -> dict[str, Any]:
        authority = self.cluster / "pki" / "ca.crt"
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(authority)},
            },
            "authorization": {"mode": "Webhook"},
            "address": addresses.node(self.number),
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._cgroup}",
            "failCgroupV1": False,
            "failSwapOn": False,
            "clusterDNS": [addresses.GATEWAY],
            "clusterDomain": "cluster.local",
            "resolvConf": str(self.place.folder / "resolv.conf"),
            "enforceNodeAllocatable": [],
            "nodeStatusUpdateFrequency": "2s",
            # how soon a changed secret is seen in a pod: the operator's start waits for that, a minute and more as shipped
            "syncFrequency": "2s",
            "healthzPort": 0,
            "volumePluginDir": "/var/lib/kubelet/volume-plugins",
        }

    def _cgroup_folders(self) -> list[Path]:
        if not (_CGROUPS / "cpuset").is_dir():
            return [_CGROUPS / self._cgroup]
        return [each / self._cgroup for each in sorted(_CGROUPS.iterdir()) if each.is_dir() and not each.is_symlink()]

    def _make_cgroup(self) -> None:
        delegated = _CGROUPS / "cgroup.subtree_control"  # version 2: what a new group can count and limit
        if delegated.exists():
            controllers = (_CGROUPS / "cgroup.controllers").read_text().split()
            delegated.write_text(" ".join(f"+{each}" for each in controllers))
        for folder in self._cgroup_folders():
            folder.mkdir(exist_ok=True)
            for file in (
                "cpuset.mems",
                "cpuset.cpus",
            ):  # version 1: empty in a new group, and nothing starts in it then
                if (folder / file).exists() and (folder.parent / file).exists():
                    (folder / file).write_text((folder.parent / file).read_text())

    def _remove_cgroup(self) -> None:
        for folder in self._cgroup_folders():
            wait_until(lambda folder=folder: _removed(folder), f"the end of {folder}", self.place.log / "kubelet", 10)


def _removed(group: Path) -> bool:
    """Whether a control group is gone, with those in it; the kernel holds one for a moment after its last process."""
    try:
        for each in [*sorted(group.rglob("*/"), reverse=True), group] if group.exists() else ():
            each.rmdir()
    except OSError:
        return False
    return True
