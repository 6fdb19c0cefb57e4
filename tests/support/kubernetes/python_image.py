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

#: /bin/sh, a few tools, and python3 with its standard library.
PYTHON: Final = "localhost/yurt-test-python:1"
#: That, with TensorFlow and all that it requires on PYTHONPATH.
TENSORFLOW: Final = "localhost/yurt-test-tensorflow:1"
_CONFIG: Final = {"Env": [f"PYTHONPATH={docker_image.PACKAGES}", "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp"]}
#: Of what TensorFlow requires, what importing it and training never read.
_LEFT_OUT: Final = ("tensorflow/include", "tensorboard_data_server", "clang", "..")


def version() -> str:
    """Another text when the images would be others."""
    sources = b"".join(Path(str(each.__file__)).read_bytes() for each in (sys.modules[__name__], docker_image))
    return f"{sys.version} {_required()} {hashlib.sha256(sources).hexdigest()}"


def write(folder: Path) -> list[Path]:
    """Their files, as `docker save` writes them: 0.1 and 1.2 GB."""
    python, tensorflow = folder / "python.tar", folder / "tensorflow.tar"
    images.write_layers(python, PYTHON, [_root], _CONFIG)
    images.write_layers(tensorflow, TENSORFLOW, [_root, _packages], _CONFIG)
    return [python, tensorflow]


def _root(archive: tarfile.TarFile) -> None:
    docker_image._write(archive, Path(os.path.realpath(sys.executable)), "python3")


def _packages(archive: tarfile.TarFile) -> None:
    for name in _required():
        for file in importlib.metadata.distribution(name).files or ():
            if not str(file).startswith(_LEFT_OUT) and file.suffix not in (".h", ".a"):
                archive.add(str(file.locate()), f"{docker_image.PACKAGES}/{file}", recursive=False)


def _required() -> dict[str, str]:
    """TensorFlow, legacy Keras and what they require: names of distributions and their versions."""
    distributions = importlib.metadata.packages_distributions()  # tensorflow may be had as tensorflow_cpu
    found: dict[str, str] = {}
    ask = [*distributions["tensorflow"], *distributions["tf_keras"]]
    while ask:
        name = re.sub(r"[-_.]+", "-", ask.pop().lower())
        if name in found:
            continue
        try:
            distribution = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            continue  # for another platform, or had under another name
        found[name] = distribution.version
        ask += [re.split(r"[^\w.-]", each)[0] for each in distribution.requires or () if "extra ==" not in each]
    return dict(sorted(found.items()))
