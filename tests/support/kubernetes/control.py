"""The control plane of a rig: etcd, API server, controllers, scheduler, kube-proxy and DNS in one place, which has the network."""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.kubernetes import addresses, certificates
from tests.support.kubernetes.binaries import Binaries
from tests.support.kubernetes.link import Link
from tests.support.kubernetes.place import Place, wait_until

#: A node that is silent for so long is NotReady: seconds instead of upstream's 50.
NOT_READY_AFTER_S: Final = 10
_COREDNS: Final = """cluster.local:53 in-addr.arpa:53 {{
    bind {gateway}
    errors
    kubernetes cluster.local in-addr.arpa {{
        kubeconfig {kubeconfig} yurt-test
        ttl 1
    }}
    cache 1
}}
.:53 {{
    bind {gateway}
    template ANY ANY {{
        rcode NXDOMAIN
    }}
}}
"""


@dataclass(frozen=True)
class ControlPlane:
    """In the rig's folder."""

    folder: Path
    binaries: Binaries

    @property
    def place(self) -> Place:
        return Place("control", self.folder / "control")

    @property
    def kubeconfig(self) -> Path:
        return self.folder / "kubeconfig"

    @property
    def link(self) -> Link:
        return Link.of(self.folder)

    def start(self) -> None:
        """Until its API server is ready."""
        place, pki = self.place, self.folder / "pki"
        place.start(self.binaries.pause)
        link = Link.make(place, self.folder)
        certificates.make(pki, self.kubeconfig, link.api)
        self._make_bridge()
        etcd = "http://127.0.0.1:2379"
        place.serve("etcd", self.binaries.part("etcd"), "--data-dir", place.folder / "etcd", "--unsafe-no-fsync",
                    "--listen-client-urls", etcd, "--advertise-client-urls", etcd)  # fmt: skip
        self.start_api_server()
        place.serve("controllers", self.binaries.part("kube-controller-manager"), "--kubeconfig", self.kubeconfig,
                    "--service-account-private-key-file", pki / "service-accounts.key", "--root-ca-file", pki / "ca.crt",
                    "--use-service-account-credentials", "--leader-elect=false",
                    "--node-monitor-grace-period", f"{NOT_READY_AFTER_S}s", "--node-monitor-period", "2s")  # fmt: skip
        place.serve(
            "scheduler", self.binaries.part("kube-scheduler"), "--kubeconfig", self.kubeconfig, "--leader-elect=false"
        )
        self._start_network()

    def start_api_server(self) -> None:
        """Until it is ready."""
        place, pki = self.place, self.folder / "pki"
        place.serve("api-server", self.binaries.part("kube-apiserver"), "--etcd-servers", "http://127.0.0.1:2379",
                    "--secure-port", "6443", "--advertise-address", self.link.api,
                    "--cert-dir", "/run/kube-apiserver",
                    "--tls-cert-file", pki / "apiserver.crt", "--tls-private-key-file", pki / "apiserver.key",
                    "--client-ca-file", pki / "ca.crt",
                    "--service-account-issuer", "https://kubernetes.default.svc",
                    "--service-account-key-file", pki / "service-accounts.key",
                    "--service-account-signing-key-file", pki / "service-accounts.key",
                    "--service-cluster-ip-range", addresses.SERVICES, "--authorization-mode", "RBAC", "--allow-privileged",
                    "--kubelet-preferred-address-types", "InternalIP",
                    "--kubelet-client-certificate", pki / "admin.crt", "--kubelet-client-key", pki / "admin.key")  # fmt: skip
        wait_until(lambda: self.kubectl("get", "--raw", "/readyz") == "ok", "the API server", place.log / "api-server")

    def kubectl(self, *words: str | Path) -> str:
        """What kubectl prints. Raises RuntimeError with its message."""
        known = ["--kubeconfig", self.kubeconfig, "--cache-dir", self.folder / "kubectl"]
        command = [self.binaries.part("kubectl"), *known, *words]
        done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return done.stdout

    def _make_bridge(self) -> None:
        """Between all pods of all nodes."""
        place, width = self.place, addresses.PODS.partition("/")[2]
        place.run("ip", "link", "add", "pods", "type", "bridge")
        place.run("ip", "address", "add", f"{addresses.GATEWAY}/{width}", "dev", "pods")
        place.run("ip", "link", "set", "pods", "up")
        place.run("sysctl", "-w", "net.ipv4.ip_forward=1")

    def _start_network(self) -> None:
        proxy = {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "clientConnection": {"kubeconfig": str(self.kubeconfig)},
            "mode": "iptables",
            "clusterCIDR": addresses.PODS,
            "hostnameOverride": "node1",
            "conntrack": {"maxPerCore": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        }
        place = self.place
        (place.folder / "proxy.json").write_text(json.dumps(proxy, indent=1))
        place.serve("proxy", self.binaries.part("kube-proxy"), "--config", place.folder / "proxy.json")
        corefile = place.folder / "Corefile"
        corefile.write_text(_COREDNS.format(gateway=addresses.GATEWAY, kubeconfig=self.kubeconfig))
        place.serve("dns", self.binaries.dns, "-conf", corefile)
