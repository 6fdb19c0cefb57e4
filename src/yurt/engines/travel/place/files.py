"""The job's files where they do not travel in the job: from a bucket by a signed URL, or from a git commit.

Each is made whole beside its place and moved there, so a task that starts again in its allocation finds all or nothing.
"""
# The agent does without pathlib, and this is the agent's process:
# ruff: noqa: PTH103, PTH105, PTH112, PTH118, PTH123

from __future__ import annotations

import hashlib
import http.client
import os
import shutil
import subprocess
import tarfile
import time
import urllib.error
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

from yurt.agent.process import tied_to_parent
from yurt.engines.travel.place.problem import NotReady

#: Seconds of rest before each further try: what hinders a fetch is often over by then.
PAUSES_S: Final = (1.0, 3.0, 9.0, 20.0)
#: Seconds without a byte after which a request has failed.
_SILENT_S: Final = 60.0
_PIECE_BYTES: Final = 1 << 20
#: Answers of an object store that another try may mend.
_PASSING: Final = (408, 429, 500, 502, 503, 504)


def fetch(order: Mapping[str, Any], work: str) -> None:
    """Put the files that the order names into the folder `work`, unless it is there. Raises NotReady."""
    if os.path.isdir(work):
        return
    part = f"{work}.part"
    shutil.rmtree(part, ignore_errors=True)
    os.makedirs(part)
    try:
        found = from_bucket(order, part) if order["from"] == "bucket" else from_git(order, part)
        os.replace(found, work)
    except OSError as error:
        raise NotReady(
            f"the job's files cannot be put into {work}: {error.strerror or error}",
            hint="is there room? see the engine's options for disk",
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def from_bucket(order: Mapping[str, Any], part: str) -> str:
    """The folder of the files out of the archive at ``url``, whose SHA-256 is ``sha256``."""
    archive = os.path.join(part, "files.tar.xz")
    download(order, archive, "the job's files")
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):  # not before Python 3.11.4
            tar.extraction_filter = tarfile.data_filter
        tar.extractall(part)  # noqa: S202 - our own archive, and its hash is right
    return os.path.join(part, "work")


def download(order: Mapping[str, Any], archive: str, what: str) -> None:
    """Put what is at ``url`` into the file `archive`; its SHA-256 has to be ``sha256``. Raises NotReady."""
    for pause_s in (*PAUSES_S, None):
        try:
            digest = _download(order["url"], archive)
            if digest == order["sha256"]:
                return
            problem = f"what came is not what was sent (SHA-256 {digest[:12]}... instead of {order['sha256'][:12]}...)"
        except urllib.error.HTTPError as error:
            problem = f"the answer was {error.code} {error.reason}"
            if error.code not in _PASSING:
                pause_s = None  # noqa: PLW2901 - an answer that stays
        except (OSError, http.client.HTTPException) as error:
            problem = str(getattr(error, "reason", error))
        if pause_s is None:
            raise NotReady(
                f"{what} cannot be fetched from {order['name']}: {problem}",
                hint="its signed address holds for 7 days, and no longer than the launcher's credentials; the node must"
                " reach the object store at the address that the launcher uses",
            )
        time.sleep(pause_s)


def _download(url: str, target: str) -> str:
    """The SHA-256 of what came."""
    digest = hashlib.sha256()
    with urllib.request.urlopen(url, timeout=_SILENT_S) as answer, open(target, "wb") as file:  # noqa: S310 - the launcher signed it
        while piece := answer.read(_PIECE_BYTES):
            digest.update(piece)
            file.write(piece)
    return digest.hexdigest()


def from_git(order: Mapping[str, Any], part: str) -> str:
    """The folder ``folder`` of the commit ``commit`` at ``url``; ``ref`` leads to it."""
    clone = os.path.join(part, "clone")
    url, commit = order["url"], order["commit"]
    _git("init", "--quiet", clone)
    for pause_s in (*PAUSES_S[:2], None):
        try:
            try:
                _git("-C", clone, "fetch", "--quiet", "--no-tags", "--depth", "1", "--", url, commit)
            except NotReady:  # a server may give no commit by its name: then the history, to where it leads
                _git("-C", clone, "fetch", "--quiet", "--no-tags", "--", url, order["ref"])
            break
        except NotReady:
            if pause_s is None:
                raise
            time.sleep(pause_s)
    _git("-C", clone, "checkout", "--quiet", "--detach", commit)
    shutil.rmtree(os.path.join(clone, ".git"))
    return os.path.join(clone, order["folder"]) if order["folder"] else clone


def _git(*arguments: str) -> None:
    try:
        done = subprocess.run(
            ["git", *arguments],
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            preexec_fn=tied_to_parent(),
        )
    except FileNotFoundError:
        raise NotReady("the job's files come from git, and this node has no git", hint="install it there") from None
    if done.returncode:
        said = " / ".join(line.strip() for line in done.stderr.splitlines() if line.strip()) or f"{done.returncode}"
        raise NotReady(
            f"the job's files cannot be fetched from git; git said: {said}",
            hint="the node needs its own right to read the repository",
        )
