"""What a rig runs, built once from Go modules: Kubernetes 1.36, CoreDNS, the Kubeflow training operator, and their images.

Every part is the real one, at the version that the go.mod files beside this file pin; nothing else is downloaded. The first
build takes some five minutes on two cores. The result is kept in YURT_TEST_KUBERNETES (usually ~/.cache/yurt/kubernetes).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.kubernetes import images

SOURCE: Final = Path(__file__).parent / "source"
KUBERNETES: Final = "v1.36.3"
OPERATOR: Final = "v1.9.3"
_GO_MINOR: Final = 26
#: To be raised when `_build` makes something else of the same sources.
_LAYOUT: Final = 1
_OPERATOR_MODULE: Final = "github.com/kubeflow/training-operator"
_PARTS: Final = (
    "etcd",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
    "kubectl",
)


def home() -> Path:
    """Where builds, images and rigs are kept."""
    usual = Path.home() / ".cache" / "yurt" / "kubernetes"
    return Path(os.environ.get("YURT_TEST_KUBERNETES") or usual)


@dataclass(frozen=True)
class Binaries:
    """A folder with all of them."""

    folder: Path

    def part(self, name: str) -> Path:
        """A part of Kubernetes by its name upstream, kubectl too."""
        return self.folder / "bin" / name

    @property
    def dns(self) -> Path:
        return self.folder / "bin" / "dns"

    @property
    def pause(self) -> Path:
        return self.folder / "bin" / "pause"

    @property
    def pause_image(self) -> Path:
        return self.folder / "pause.tar"

    @property
    def operator_image(self) -> Path:
        return self.folder / "operator.tar"

    @property
    def operator_manifests(self) -> Path:
        return self.folder / "manifests"


def built() -> bool:
    """Whether all is there, so that `build` takes no time and no Go."""
    return _folder().exists()


def no_go() -> str:
    """Why nothing can be built here; empty where it can. Go from 1.21 on gets the version that go.mod asks for by itself."""
    if shutil.which("go") is None:
        return "there is no go on PATH"
    done = subprocess.run(["go", "version"], cwd=SOURCE / "cluster", capture_output=True, text=True, check=False)
    ours = re.search(r"go1\.(\d+)", done.stdout)
    if done.returncode or ours is None or int(ours[1]) < _GO_MINOR:
        return f"it is not 1.{_GO_MINOR} or newer: {(done.stderr or done.stdout).strip()}"
    return ""


def build() -> Binaries:
    """Build what is not there yet. Raises RuntimeError with Go's last lines where that fails."""
    folder = _folder()
    if built():
        return Binaries(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with (folder.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built():
            half = Binaries(folder.with_suffix(".half"))
            shutil.rmtree(half.folder, ignore_errors=True)
            _build(half)
            half.folder.rename(folder)
    return Binaries(folder)


def _folder() -> Path:
    digest = hashlib.sha256(f"{_LAYOUT} {KUBERNETES} {OPERATOR}".encode())
    for file in sorted(SOURCE.rglob("*.*")):
        digest.update(file.read_bytes())
    return home() / "built" / digest.hexdigest()[:12]


def _build(to: Binaries) -> None:
    version = "k8s.io/component-base/version"
    major, minor, _ = KUBERNETES.removeprefix("v").split(".")
    flags = f"-X {version}.gitVersion={KUBERNETES} -X {version}.gitMajor={major} -X {version}.gitMinor={minor}"
    work = to.folder / "source"
    shutil.copytree(SOURCE, work)  # -mod=mod may write go.sum
    for name, more in (("cluster", flags), ("dns", ""), ("pause", "")):
        _go(work / name, "build", "-ldflags", f"-s -w {more}", "-o", str(to.folder / "bin" / name), ".")
    for name in _PARTS:
        to.part(name).symlink_to("cluster")
    command = "cmd/training-operator.v1"
    _go(
        work,
        "install",
        "-ldflags",
        "-s -w",
        f"{_OPERATOR_MODULE}/{command}@{OPERATOR}",
        GOBIN=str(to.folder / "operator"),
    )
    images.write(to.pause_image, "localhost/pause:1", {"pause": to.pause}, entrypoint="/pause")
    operator = {"manager": to.folder / "operator" / "training-operator.v1"}
    images.write(to.operator_image, "localhost/training-operator:1", operator, entrypoint="/manager")
    module = json.loads(_go(work, "mod", "download", "-json", f"{_OPERATOR_MODULE}@{OPERATOR}"))["Dir"]
    shutil.copytree(Path(module) / "manifests", to.operator_manifests, copy_function=shutil.copyfile)
    for each in to.operator_manifests.rglob("*/"):
        each.chmod(0o755)
    shutil.rmtree(work)


def _go(folder: Path, *words: str, **environment: str) -> str:
    env = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod -trimpath", **environment}
    done = subprocess.run(["go", *words], cwd=folder, env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"go {words[0]} in {folder.name}: {done.stderr.strip()[-2000:]}")
    return done.stdout
