"""The commit that a job's files are, for nodes that fetch it themselves."""

from __future__ import annotations

import hashlib
import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from yurt.errors import EngineError, UsageError


def commit_of(url: str, ref: str, folder: str, files: Path) -> str:
    """The full name of the commit that `ref` is at `url`; every one of `files` is in its `folder` as it is here.

    Raises:
        EngineError: it is not there.
        UsageError: one of the files is not in it or is different.
    """
    with tempfile.TemporaryDirectory(prefix="yurt-git-") as name:
        _git("init", "--quiet", "--bare", name)
        try:
            _git("-C", name, "fetch", "--quiet", "--no-tags", "--depth", "1", "--", url, ref)
            commit = _git("-C", name, "rev-parse", "FETCH_HEAD^{commit}").strip()
        except EngineError as error:
            raise EngineError(f"{ref} of {url} cannot be fetched; {error}", hint="was it pushed?") from error
        try:
            listed = _git("-C", name, "ls-tree", "-r", "-z", f"{commit}:{folder}")
        except EngineError as error:
            raise EngineError(f"{url} has no folder {folder!r} at {ref} ({commit[:12]})") from error
    there = dict(_entry(line) for line in listed.split("\0") if line)
    other = sorted(_differing(files, there))
    if other:
        more = f" and {len(other) - 3} more" if len(other) > 3 else ""
        raise UsageError(
            f"the nodes take the job's files from {url}, and {', '.join(other[:3])}{more} of the job's folder "
            f"{'is' if len(other) == 1 else 'are'} not so at {ref} ({commit[:12]})",
            hint="commit and push, or name other files under `files`",
        )
    return commit


def _entry(line: str) -> tuple[str, str]:
    """A line of ls-tree's as (path, hash): ``100644 blob 0a1b...<TAB>train.py``."""
    about, _, path = line.partition("\t")
    return path, about.split(" ")[2]


def _differing(files: Path, there: Mapping[str, str]) -> list[str]:
    paths = [path for path in files.rglob("*") if path.is_file()]
    return [name for path in paths if there.get(name := str(path.relative_to(files))) not in _hashes(path)]


def _hashes(path: Path) -> tuple[str, str]:
    """The name that git has for the file's content, in repositories of SHA-1 and of SHA-256."""
    content = path.read_bytes()
    whole = b"blob %d\0" % len(content) + content
    return hashlib.sha1(whole, usedforsecurity=False).hexdigest(), hashlib.sha256(whole).hexdigest()


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ["git", *arguments],
            env={**os.environ, "GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=False,
        )
    except FileNotFoundError:
        raise EngineError("the job's files come from git, and git is not on PATH", hint="install it") from None
    if done.returncode:
        raise EngineError(f"git said: {' / '.join(line.strip() for line in done.stderr.splitlines() if line.strip())}")
    return done.stdout
