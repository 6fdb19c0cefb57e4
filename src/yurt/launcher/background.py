"""Starts a process that looks after a run and outlives whoever starts it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from yurt.launcher.home import home
from yurt.launcher.records import RunFolder

#: Variables that name files, which may be relative to the folder where somebody has typed `yurt`.
_PATHS: Final = (
    *("CONSUL_CACERT", "CONSUL_CAPATH", "CONSUL_CLIENT_CERT", "CONSUL_CLIENT_KEY", "CONSUL_HTTP_TOKEN_FILE"),
    *("NOMAD_CACERT", "NOMAD_CAPATH", "NOMAD_CLIENT_CERT", "NOMAD_CLIENT_KEY"),
    *("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE", "GOOGLE_APPLICATION_CREDENTIALS"),
    *("DOCKER_CERT_PATH", "KUBECONFIG", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)


def start(module: str, *arguments: str, run: RunFolder, append: bool = False) -> subprocess.Popen[bytes]:
    """``python -m MODULE ARGUMENTS`` without a terminal, in the run's folder, with pipes to talk to it.

    It writes its errors to the launcher's log of the run.
    """
    with run.launcher_log.open("ab" if append else "wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            start_new_session=True,
            cwd=run.path,
            env={**from_anywhere(os.environ), "YURT_HOME": str(home())},
        )


def from_anywhere(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment, with the files that it names by paths that hold in every folder."""
    paths = {name: environ[name] for name in _PATHS if environ.get(name)}
    absolute = {name: os.pathsep.join(map(_absolute, text.split(os.pathsep))) for name, text in paths.items()}
    return {**environ, **absolute}


def _absolute(path: str) -> str:
    return path if not path or path.startswith("~") else str(Path(path).absolute())
