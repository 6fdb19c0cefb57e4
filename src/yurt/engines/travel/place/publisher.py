"""The object store's client beside an agent whose Python lacks it: without it a model could not be published."""
# The agent does without pathlib, and this is the agent's process:
# ruff: noqa: PTH103, PTH110, PTH112, PTH118, PTH208

from __future__ import annotations

import os
import platform
import shutil
import ssl
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from typing import Any, Final

from yurt.agent.process import tied_to_parent
from yurt.engines.travel.place.files import download
from yurt.engines.travel.place.problem import NotReady

PACKAGE: Final = "obstore"


def borrow(order: Mapping[str, Any] | None, folder: str, output: str) -> str:
    """What the publisher's Python has to do first, as code; empty where it has the package already.

    Raises NotReady: better now than when the model is there.

    `order` is what `yurt.engines.travel.publisher` has lent.
    """
    if _fault("") is None:
        return ""
    if order is None or "why_not" in order:
        raise _missing(output, "" if order is None else order["why_not"])
    here = [sys.platform, platform.machine(), platform.libc_ver()[0]]
    if order["platform"] != here:
        there = " ".join(order["platform"])
        raise _missing(output, f"that of the launcher's machine ({there}) does not run here ({' '.join(here)})")
    target = os.path.join(folder, "packages")
    if not os.path.isdir(target):
        part = f"{target}.part"
        shutil.rmtree(part, ignore_errors=True)
        os.makedirs(part)
        archive = os.path.join(part, "package.tar.gz")
        download(order, archive, "the package for publishing")
        with tarfile.open(archive) as tar:
            if hasattr(tarfile, "data_filter"):  # not before Python 3.11.4
                tar.extraction_filter = tarfile.data_filter
            tar.extractall(part)  # noqa: S202 - the launcher's own archive, and its hash is right
        os.replace(part, target)  # noqa: PTH105
    first = f"import os, sys; sys.path.insert(0, {target!r}); "
    if (said := _fault(first)) is not None:
        raise _missing(output, f"that of the launcher's machine does not run here: {said}")
    authorities = os.path.join(target, "cacert.pem")
    if os.path.exists(authorities) and not _has_authorities():
        first += f"os.environ.setdefault('SSL_CERT_FILE', {authorities!r}); "
    return first


def _has_authorities() -> bool:
    """Whether the system has certificates of authorities: without any, obstore (0.12) makes no connection at all."""
    paths: tuple[str | None, ...] = ssl.get_default_verify_paths()
    file, folder = paths[0], paths[1]  # as they are, or None where they are not there
    return file is not None or (folder is not None and bool(os.listdir(folder)))


def _fault(first: str) -> str | None:
    """Why the package cannot be imported by this Python, as the publisher is started; None where it can."""
    tried = subprocess.run(
        [sys.executable, "-c", f"{first}import {PACKAGE}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        errors="replace",
        check=False,
        preexec_fn=tied_to_parent(),
    )
    return (tried.stderr.strip().splitlines() or [f"exit code {tried.returncode}"])[-1] if tried.returncode else None


def _missing(output: str, why: str) -> NotReady:
    return NotReady(
        f"the model could not be published to {output}: {sys.executable} has no {PACKAGE}"
        + (f", and {why}" if why else ""),
        hint=f"put it into the image or the environment: pip install {PACKAGE}",
    )
