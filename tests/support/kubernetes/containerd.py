"""Debian's containerd in a place, and the disk that it starts from.

Importing an image of a gigabyte takes a node many seconds and twice its size. So that is done once: the result is kept, and
every node of every rig starts from hard links to it, which takes a second and no space. What containerd has unpacked it never
writes to again; its two databases are copied. Facts are of containerd 1.6.
"""

from __future__ import annotations

import fcntl
import hashlib
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.support.kubernetes import python_image
from tests.support.kubernetes.binaries import Binaries, home
from tests.support.kubernetes.place import Place, wait_until

#: restrict_oom_score_adj: without CAP_SYS_RESOURCE runc cannot lower the score, and a sandbox never starts.
_CONFIGURATION: Final = """version = 2
[plugins."io.containerd.internal.v1.opt"]
  path = "/var/lib/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "localhost/pause:1"
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "{networks}"
"""


@dataclass(frozen=True)
class Containerd:
    """The one of a place that has been started."""

    place: Place

    @property
    def networks(self) -> Path:
        """Where it reads how to connect a pod."""
        return self.place.folder / "networks"

    def start(self) -> None:
        """Until it answers."""
        place = self.place
        self.networks.mkdir(exist_ok=True)
        configuration = place.folder / "containerd.toml"
        configuration.write_text(_CONFIGURATION.format(networks=self.networks))
        place.serve("containerd", "containerd", "--config", configuration)
        wait_until(lambda: bool(place.run("ctr", "version")), f"containerd of {place.name}", place.log / "containerd")

    def load(self, image: Path) -> None:
        """Import a file as `docker save` writes it."""
        self.place.run("ctr", "--namespace", "k8s.io", "images", "import", image)


def lay_disk(place: Place, binaries: Binaries) -> None:
    """Give a place that was never started all the images: `tests.support.kubernetes.python_image`, and the rig's own."""
    disk, to = _disk(binaries), place.folder / "var-lib"
    place.folder.mkdir(parents=True)
    subprocess.run(["cp", "--archive", "--link", disk, to], check=True)
    for database in disk.rglob("*.db"):
        copy = to / database.relative_to(disk)
        copy.unlink()
        shutil.copy2(database, copy)


def _disk(binaries: Binaries) -> Path:
    """The folder that is /var/lib of a node with all images; made if it is not there yet."""
    parts = (binaries.folder.name, python_image.version(), _CONFIGURATION)
    disk = home() / "disks" / hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]
    disk.parent.mkdir(parents=True, exist_ok=True)
    with (disk.parent / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not disk.exists():
            for old in disk.parent.glob("*/"):
                Place("disk", old).kill()
                shutil.rmtree(old)
            _fill(Place("disk", disk.with_suffix(".half")), binaries)
            (disk.with_suffix(".half") / "var-lib").rename(disk)
            shutil.rmtree(disk.with_suffix(".half"))
    return disk


def _fill(place: Place, binaries: Binaries) -> None:
    place.start(binaries.pause)
    try:
        containerd = Containerd(place)
        containerd.start()
        made = python_image.write(place.folder)
        for image in (binaries.pause_image, binaries.operator_image, *made):
            containerd.load(image)
        place.end("containerd")
    finally:
        place.kill()
