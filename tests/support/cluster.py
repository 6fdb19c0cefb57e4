"""A real Nomad and a real Consul of this test run's own, where both are on PATH."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.runs import Folder
from yurt.cluster.dev import DevCluster
from yurt.engines.nomad.address import from_environment
from yurt.engines.nomad.client import NomadClient

SYSTEM_PYTHON = "/usr/bin/python3"


def need_cluster() -> None:
    """Skip, by name of what is missing, where there can be no cluster."""
    missing = [name for name in ("nomad", "consul") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"no {' and no '.join(missing)} on PATH: runs on a real cluster are not tested")
    if os.geteuid() != 0:
        pytest.skip("a Nomad client needs root")


def raised(nodes: int, **options: Any) -> Iterator[DevCluster]:
    """A cluster (`options` are DevCluster's) for as long as the tests that use it; skips them where it cannot be."""
    need_cluster()
    with DevCluster(clients=nodes, **options) as cluster:
        yield cluster


def environment_for_exec(folder: Path, packages: str) -> Path | None:
    """An environment of the system's Python, which the driver exec's chroot has, with the packages of another place.

    None where the system has no Python, or one of another version than ours, whose packages they are.
    """
    version = [SYSTEM_PYTHON, "-c", "import sys; print(sys.version_info[:2])"]
    if not Path(SYSTEM_PYTHON).exists() or subprocess.check_output(version, text=True).strip() != str(
        sys.version_info[:2]
    ):
        return None
    subprocess.run([SYSTEM_PYTHON, "-m", "venv", "--without-pip", folder], check=True)
    [own] = folder.glob("lib/python3*/site-packages")
    (own / "packages.pth").write_text(packages)
    return folder


def client(cluster: DevCluster) -> NomadClient:
    """Its API."""
    return NomadClient(from_environment(cluster.environment))


def folder_on(cluster: DevCluster, path: Path) -> Iterator[Folder]:
    """A person's folder; every run in it is over when it is left. Tasks that wait for ``enough`` may go on then."""
    place = Folder(path, dict(cluster.environment))
    yield place
    (path / "enough").touch()
    for run_id in place.run_ids():
        place.yurt("stop", "--now", run_id)
    left = [job["ID"] for job in client(cluster).jobs() if job["Status"] != "dead"]
    assert left == [], "nothing is left on the cluster"
