"""The Python environment that a job describes: made once a node, and kept there for whoever asks for the same.

Below the cache folder each environment has a key: a hash of its requirements, of the local files that these name, and
of the node's Python. ``<key>`` is a link to a folder ``<key>-<letters>``; the link is made last, by a rename, so what
it leads to is whole. (The folder itself cannot be renamed: the scripts in an environment hold its path.)
``<key>.lock`` is locked by whoever builds, and shared by every agent whose task uses the environment; its time is that
of the last use. Each user of the node has a folder of its own: nobody runs what another has put there.
"""
# The agent does without pathlib, and this is the agent's process:
# ruff: noqa: PTH103, PTH105, PTH108, PTH110, PTH111, PTH112, PTH113, PTH114, PTH116, PTH118, PTH119, PTH120, PTH123, PTH202, PTH204, PTH208, PTH211

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from yurt.agent.process import tied_to_parent
from yurt.engines.travel.place.problem import NotReady

#: Where environments are kept unless the job says otherwise: the first that can be written to.
DEFAULT_FOLDERS: Final = ("/var/cache/yurt", "~/.cache/yurt")
#: Seconds without use after which an environment may go; an hour's margin is no matter.
UNUSED_S: Final = 30 * 24 * 3600.0
#: Lines of pip's that a person is shown; all of them are in the task's log.
_LAST_LINES: Final = 4
_COMMENT: Final = re.compile(r"(^|\s)#.*")
_EDITABLE: Final = re.compile(r"\s*(-e|--editable)\b")
_PACKAGES: Final = "import json, sys; print(json.dumps([p for p in sys.path if p.endswith('-packages')]))"


class Environment:
    """One environment of this node, held against pruning for as long as this object lives.

    `folder` is the environment's own, `python` its interpreter, `scripts` the folder for PATH.
    """

    def __init__(self, folder: str, lock: int) -> None:
        self.folder = folder
        self.scripts = os.path.join(folder, "bin")
        self.python = os.path.join(self.scripts, "python")
        self._lock = lock  # open until the process ends

    def has(self, package: str) -> bool:
        """Whether a package is in it, by the name of its folder."""
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        return os.path.isdir(os.path.join(self.folder, "lib", version, "site-packages", package))


def environment(
    requirements: str, work: str, cache: str | None, *, on_top: bool, variables: Mapping[str, str]
) -> Environment:
    """The environment of the file `requirements` among the job's files `work`; made where there is none.

    on_top
        The packages of the node's Python are seen in it too.
    variables
        What pip finds in its environment.

    Raises:
        NotReady: it cannot be made; pip's last lines say why.
    """
    file = os.path.join(work, requirements)
    if not os.path.isfile(file):
        raise NotReady(f"the requirements file {requirements!r} is not among the job's files", hint="see `files`")
    user = os.getuid()
    folder = os.path.join(cache_folder(cache), f"environments-{user}")
    try:
        os.makedirs(folder, mode=0o755, exist_ok=True)
        if os.stat(folder).st_uid != user:
            raise NotReady(f"{folder} belongs to another user: what is in it is not run", hint="remove it on that node")
        key = key_of(file, work, on_top=on_top)
        lock = os.open(os.path.join(folder, f"{key}.lock"), os.O_RDWR | os.O_CREAT, 0o644)
        link = os.path.join(folder, key)
        _make_once(link, lock, file, work, on_top=on_top, variables=variables)
        os.utime(f"{link}.lock")
        prune(folder, time.time() - UNUSED_S)
        return Environment(os.path.realpath(link), lock)
    except OSError as error:
        raise NotReady(
            f"no Python environment can be made in {folder}: {error.strerror or error}",
            hint="name a folder of the node that tasks may write to and that has room by the option cache_folder",
        ) from error


def cache_folder(named: str | None) -> str:
    """The folder to keep things in between runs. Raises NotReady where there is none."""
    for folder in (named,) if named else DEFAULT_FOLDERS:
        path = os.path.expanduser(folder)
        try:
            os.makedirs(path, exist_ok=True)
        except OSError:
            continue
        if os.access(path, os.W_OK | os.X_OK):
            return path
    tried = named or " and ".join(DEFAULT_FOLDERS)
    raise NotReady(
        f"there is no folder to keep the Python environment in: {tried} cannot be written to",
        hint="name one that this node's tasks may write to: the engine's option cache_folder",
    )


def key_of(file: str, work: str, *, on_top: bool) -> str:
    """A hash of all that decides what is in the environment, but what an index has at the time."""
    digest = hashlib.sha256()
    for part in (sys.version, os.path.realpath(sys.executable), sys.executable if on_top else ""):
        digest.update(f"{part}\0".encode())
    for path in _named_by(file, work, set()):
        with open(path, "rb") as opened:
            digest.update(f"{os.path.relpath(path, work)}\0{os.path.getsize(path)}\0".encode())
            for piece in iter(lambda: opened.read(1 << 20), b""):
                digest.update(piece)
    return digest.hexdigest()[:32]


def _named_by(file: str, work: str, seen: set[str]) -> Iterator[str]:
    """The file, and those of the job's files whose names stand in it: other requirements, wheels, folders of them."""
    seen.add(file)
    yield file
    with open(file, encoding="utf-8", errors="replace") as opened:
        lines = [_COMMENT.sub("", line) for line in opened]
    if editable := next((line.strip() for line in lines if _EDITABLE.match(line)), None):
        raise NotReady(
            f"{os.path.relpath(file, work)} has {editable!r}: what is installed so is gone with this task's folder",
            hint="name the folder without -e",
        )
    for word in dict.fromkeys(re.split(r"[\s=@,\[\]]+", " ".join(lines))):
        for base in (os.path.dirname(file), work) if word else ():
            path = os.path.normpath(os.path.join(base, word.removeprefix("file://")))
            if path in seen or not f"{path}/".startswith(f"{work}/"):
                continue
            if os.path.isfile(path) and path.endswith((".txt", ".in")):
                yield from _named_by(path, work, seen)
            elif os.path.exists(path):
                seen.add(path)
                yield from [path] if os.path.isfile(path) else _below(path)


def _below(folder: str) -> Iterator[str]:
    """Its files, but what a build leaves there."""
    for name, folders, files in os.walk(folder):
        folders[:] = sorted(
            each for each in folders if each not in ("__pycache__", "build") and not each.endswith(".egg-info")
        )
        yield from (os.path.join(name, each) for each in sorted(files))


def _make_once(link: str, lock: int, file: str, work: str, *, on_top: bool, variables: Mapping[str, str]) -> None:
    """Returns with the lock shared and the link there."""
    while True:
        fcntl.flock(lock, fcntl.LOCK_SH)
        if os.path.exists(os.path.join(link, "bin", "python")):
            return
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            _say("waits for another task on this node, which makes the same Python environment")
            fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(os.path.join(link, "bin", "python")):
            _build(link, file, work, on_top=on_top, variables=variables)


def _build(link: str, file: str, work: str, *, on_top: bool, variables: Mapping[str, str]) -> None:
    """Build beside, then let the link lead there. Nobody else builds this one now."""
    parent, key = os.path.split(link)
    _remove(parent, key)  # what a builder left that was killed
    name = os.path.relpath(file, work)
    _say(f"makes the Python environment of {name} in {parent}: once on this node")
    start = time.monotonic()
    folder = tempfile.mkdtemp(prefix=f"{key}-", dir=parent)
    try:
        _run([sys.executable, "-m", "venv", folder], work, variables, f"the Python environment of {name}")
        if on_top:
            _see_packages_of_node(folder, work, variables)
        python = os.path.join(folder, "bin", "python")
        pip = [python, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar", "off"]
        _run([*pip, "--requirement", file], work, variables, f"what {name} asks for")
        os.symlink(os.path.basename(folder), f"{folder}.link")
        os.replace(f"{folder}.link", link)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    _say(f"the Python environment is ready after {time.monotonic() - start:.0f} s")


def _see_packages_of_node(folder: str, work: str, variables: Mapping[str, str]) -> None:
    """Its own option would show the packages of the Python below the node's, where that is an environment itself."""
    import json

    asked = subprocess.run(
        [sys.executable, "-c", _PACKAGES],
        cwd=work,
        env=dict(variables),
        stdout=subprocess.PIPE,
        check=False,
        preexec_fn=tied_to_parent(),
    )
    if asked.returncode:
        raise NotReady(f"{sys.executable} does not start: exit code {asked.returncode}")
    paths = json.loads(asked.stdout)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    own = os.path.join(folder, "lib", version, "site-packages")
    with open(os.path.join(own, "packages_of_the_node.pth"), "w", encoding="utf-8") as file:
        file.writelines(f"import site; site.addsitedir({path!r})\n" for path in paths)


def _run(command: Sequence[str], folder: str, variables: Mapping[str, str], what: str) -> None:
    """Show its lines as they come. Raises NotReady with the last ones where it fails."""
    last: deque[str] = deque(maxlen=_LAST_LINES)
    with subprocess.Popen(
        command,
        cwd=folder,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        preexec_fn=tied_to_parent(),  # noqa: PLW1509 - it only makes system calls
    ) as process:
        assert process.stdout
        for line in process.stdout:
            if line.strip():
                print(line, end="", flush=True)
                last.append(line.strip())
    if process.returncode:
        program = "pip" if "pip" in command else "venv"
        said = " / ".join(last) or f"exit code {process.returncode}"
        raise NotReady(f"{what} could not be installed; {program} said: {said}", hint="the task's log has all of it")


def prune(folder: str, before: float) -> None:
    """Remove the environments that were last taken before a time (seconds since 1970) and that nobody uses now."""
    for name in os.listdir(folder):
        key, dot, kind = name.rpartition(".")
        path = os.path.join(folder, name)
        if not dot or kind != "lock" or os.path.getmtime(path) >= before:
            continue
        lock = os.open(path, os.O_RDWR)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            _remove(folder, key)
        except OSError:
            continue  # somebody uses it, or another pruned it
        finally:
            os.close(lock)


def _remove(folder: str, key: str) -> None:
    """The link first: what it led to is not whole any more then."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(os.path.join(folder, key))
    for name in os.listdir(folder):
        path = os.path.join(folder, name)
        if name.startswith(f"{key}-") and not os.path.islink(path):
            shutil.rmtree(path, ignore_errors=True)
        elif name.startswith(f"{key}-"):
            os.unlink(path)


def _say(text: str) -> None:
    print(f"yurt: {text}", flush=True)
