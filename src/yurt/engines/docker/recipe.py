"""What an image for a job is built from: a Dockerfile and the job's requirements. Pure."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import dataclass
from typing import IO, Final

#: A small Debian with the Python that most TensorFlow versions have wheels for.
BASE: Final = "python:3.11-slim"

_DOCKERFILE: Final = """\
FROM {base}
COPY requirements.txt /tmp/requirements.txt
RUN PIP_ROOT_USER_ACTION=ignore python3 -m pip install --no-cache-dir -r /tmp/requirements.txt
# Tasks run as the user who started them, who may not write here: without this every start would compile it all again.
RUN python3 -m compileall -q -j 0 "$(python3 -c 'import os; print(os.path.dirname(os.__file__))')" || true
"""


@dataclass(frozen=True, slots=True)
class Recipe:
    """An image to be built: its Dockerfile, the text of its requirements, and the name it gets."""

    dockerfile: str
    requirements: str
    name: str

    def context(self) -> IO[bytes]:
        """What the daemon is sent: a tar archive, the same for the same recipe."""
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            for name, text in (("Dockerfile", self.dockerfile), ("requirements.txt", self.requirements)):
                info = tarfile.TarInfo(name)
                info.size = len(text.encode())
                archive.addfile(info, io.BytesIO(text.encode()))
        stream.seek(0)
        return stream


def recipe(job: str, requirements: str, base: str = BASE, name: str | None = None) -> Recipe:
    """The image of a job with these requirements (text of a requirements file).

    Unless it is named it is called ``yurt-<job>:<digest of base and requirements>``: another content, another name.
    """
    dockerfile = _DOCKERFILE.format(base=base)
    digest = hashlib.sha256(f"{dockerfile}\0{requirements}".encode()).hexdigest()[:12]
    return Recipe(dockerfile, requirements, name or f"yurt-{job}:{digest}")
