"""What the restricted pod security standard (Kubernetes 1.36) refuses of a pod.

A namespace that enforces it takes a Job or a TFJob all the same, and then refuses its pods.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

_VOLUMES: Final = frozenset({
    "configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "image", "persistentVolumeClaim", "projected", "secret",
})  # fmt: skip
_PROFILES: Final = ("RuntimeDefault", "Localhost")
_CAPABILITY: Final = "NET_BIND_SERVICE"
_SYSCTLS: Final = frozenset({
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem",
})  # fmt: skip


def refused(spec: Mapping[str, Any]) -> Iterator[str]:
    """Sentences about a pod's specification, each beginning with the option that it is about."""
    for name in ("hostNetwork", "hostPID", "hostIPC"):
        if spec.get(name):
            yield f"pod: {name} is not for restricted pods"
    for volume in spec.get("volumes") or ():
        for source in volume.keys() - {"name"} - _VOLUMES:
            yield f"volumes: {volume['name']} is a {source}, which is not for restricted pods"
    own = spec.get("securityContext") or {}
    yield from (f"pod_security_context: {text}" for text in _context(own))
    for each in own.get("sysctls") or ():
        if each.get("name") not in _SYSCTLS:
            yield f"pod_security_context: the sysctl {each.get('name')} is not for restricted pods"
    ours = spec["containers"][0]
    for container in (ours, *(spec.get("initContainers") or ())):
        at = "" if container is ours else f"{container['name']}: "
        yield from (f"{at}{text}" for text in _container(container))


def _container(container: Mapping[str, Any]) -> Iterator[str]:
    own = container.get("securityContext") or {}
    yield from (f"security_context: {text}" for text in _context(own))
    if own.get("privileged"):
        yield "security_context: privileged is not for restricted pods"
    if own.get("allowPrivilegeEscalation"):
        yield "security_context: allowPrivilegeEscalation is not for restricted pods"
    if own.get("procMount") not in (None, "Default"):
        yield f"security_context: procMount {own['procMount']} is not for restricted pods"
    capabilities = own.get("capabilities") or {}
    for name in capabilities.get("add") or ():
        if name != _CAPABILITY:
            yield f"security_context: the capability {name} is not for restricted pods"
    if "ALL" not in (capabilities.get("drop") or ()):
        yield "security_context: restricted pods drop ALL capabilities"
    for port in container.get("ports") or ():
        if port.get("hostPort"):
            yield f"container: the hostPort {port['hostPort']} is not for restricted pods"


def _context(own: Mapping[str, Any]) -> Iterator[str]:
    """What is refused in a pod's and in a container's context alike."""
    if own.get("runAsNonRoot") is False:
        yield "runAsNonRoot is true for restricted pods"
    if own.get("runAsUser") == 0:
        yield "runAsUser 0 is root, and restricted pods do not run as root"
    profile = (own.get("seccompProfile") or {}).get("type")
    if profile is not None and profile not in _PROFILES:
        yield f"seccompProfile {profile} is not for restricted pods"
    if (own.get("windowsOptions") or {}).get("hostProcess"):
        yield "hostProcess is not for restricted pods"
