"""What this machine lacks for a rig."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from tests.support.kubernetes import binaries

#: What a rig runs, and the package of Debian that it is in.
_PROGRAMS: Final = {
    "containerd": "containerd",
    "runc": "runc",
    "iptables": "iptables",
    "openssl": "openssl",
    "ip": "iproute2",
    "sysctl": "procps",
    "nsenter": "util-linux",
    "unshare": "util-linux",
}


def missing() -> str:
    """What a rig of our own lacks here, as a sentence; empty where nothing is missing."""
    if os.geteuid() != 0:
        return "a rig needs root"
    packages = {package for program, package in _PROGRAMS.items() if shutil.which(program) is None}
    if not Path("/usr/lib/cni/bridge").exists():
        packages.add("containernetworking-plugins")
    if packages:
        return f"a rig needs these packages of Debian: {' '.join(sorted(packages))}"
    space = ["unshare", "--pid", "--mount", "--net", "--fork", "true"]
    if (done := subprocess.run(space, capture_output=True, text=True, check=False)).returncode:
        return f"a rig needs namespaces: {done.stderr.strip()}"
    if not binaries.built() and (problem := binaries.no_go()):
        return f"a rig is built with Go: {problem}"
    return ""
