"""A real Docker daemon, an image made from this machine, and a folder whose runs use them."""

from __future__ import annotations

import pytest

from tests.support import docker_image
from tests.support.docker_daemon import some_daemon
from tests.support.runs import Folder


@pytest.fixture(scope="session")
def daemon():
    with some_daemon() as found:
        yield found


@pytest.fixture(scope="session")
def image(daemon):
    return docker_image.image(daemon.environment)


@pytest.fixture
def folder(daemon, tmp_path):
    return Folder(tmp_path, daemon.environment)


@pytest.fixture
def job(image):
    """Makes a job file's content: one worker of the test image, unless said."""

    def make(**changes):
        return {"name": "dock", "command": "train.py", "image": image, "restart": "never", "grace": "5s", **changes}

    return make
