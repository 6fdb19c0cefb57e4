"""Images with this Python for pods, made from this machine; see `tests.support.docker_image` for what is in them."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import re
import sys
import tarfile
from pathlib import Path
from typing import Final

from tests.support import docker_image
from tests.support.kubernetes import images
from tests.support.kubernetes.binaries import home

PYTHON: Final = "localhost/yurt-test-python:1"
TENSORFLOW: Final = "localhost/yurt-test-tensorflow:1"
_CONFIG: Final = {"Env": [f"PYTHONPATH={docker_image.PACKAGES}", "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp"]}
#: What `import tensorflow` and training never read: two thirds of its files.
_LEFT_OUT: Final = ("tensorflow/include", "tensorflow/lite/", "tensorboard_data_server", "clang")


def python() -> Path:
    """The file of the image `PYTHON`: /bin/sh, a few tools, python3."""
    return _made("python", PYTHON, [_root])


def tensorflow() -> Path:
    """The file of the image `TENSORFLOW`: that, with TensorFlow and all that it needs on PYTHONPATH."""
    return _made("tensorflow", TENSORFLOW, [_root, _packages])


def _made(kind: str, name: str, layers: list[images.Layer]) -> Path:
    digest = hashlib.sha256(f"{sys.version} {_needed() if kind == 'tensorflow' else ''}".encode())
    for file in (__file__, docker_image.__file__, images.__file__):
        digest.update(Path(file).read_bytes())
    file = home() / "images" / f"{kind}-{digest.hexdigest()[:12]}.tar"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        for old in file.parent.glob(f"{kind}-*.tar"):
            old.unlink()
        images.write_layers(file, name, layers, _CONFIG)
    return file


def _root(archive: tarfile.TarFile) -> None:
    docker_image._write(archive, Path(os.path.realpath(sys.executable)), "python3")


def _packages(archive: tarfile.TarFile) -> None:
    for name in _needed():
        for file in importlib.metadata.distribution(name.partition("==")[0]).files or ():
            path = str(file)
            if path.startswith((*_LEFT_OUT, "..")) or path.endswith((".pyc", ".h", ".a")):
                continue
            archive.add(str(file.locate()), f"{docker_image.PACKAGES.lstrip('/')}/{path}", recursive=False)


def _needed() -> list[str]:
    """TensorFlow, legacy Keras and what they require, as name==version."""
    found: dict[str, str] = {}
    distributions = importlib.metadata.packages_distributions()  # tensorflow may be had as tensorflow_cpu
    ask = [*distributions["tensorflow"], *distributions["tf_keras"]]
    while ask:
        name = re.sub(r"[-_.]+", "-", ask.pop().lower())
        if name in found:
            continue
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # of another platform, or an extra
        found[name] = distribution.version
        plain = [each for each in distribution.requires or () if "extra ==" not in each]
        ask += [re.match(r"[A-Za-z0-9._-]+", each)[0] for each in plain]
    return [f"{name}=={version}" for name, version in sorted(found.items())]
