"""The first thing that runs in a pod's container; any Python from 2.7 on reads it, so that one that is too old is said.

It unpacks what came in the run's config maps and becomes a task's agent or the run's keeper: `start.py ROLE [ROOT]`.
"""
# Any Python has to read it, so it is written for the oldest; and the agent, whose process this is, has no pathlib:
# ruff: noqa: ANN001, ANN201, UP010, UP020, UP024, UP031
# ruff: noqa: PTH103, PTH104, PTH107, PTH112, PTH118, PTH123, PTH208

from __future__ import print_function

import io
import json
import os
import signal
import sys
import tarfile

#: The container's folders are in it: code, run, local, checkpoints.
ROOT = "/yurt"
OLDEST = (3, 11)
TOO_OLD = 78
KEEPER = "keeper"


def main(arguments):
    # type: (list[str]) -> int
    """The container's exit code."""
    # The first process of a container is deaf to signals that it has not asked for.
    signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))
    os.dup2(1, 2)  # the kubelet keeps two streams without a common order
    role = arguments[0]
    root = arguments[1] if len(arguments) > 1 else ROOT
    if sys.version_info < OLDEST:
        text = "Python %d.%d of the image (%s) is too old for Yurt's agent, which needs 3.11: see engines: kubernetes: "
        text = text % (sys.version_info[0], sys.version_info[1], sys.executable)
        return refuse(root, text + ("keeper_image" if role == KEEPER else "python"))
    local = os.path.join(root, "local")
    try:
        unpack(os.path.join(root, "code"), local)
        with io.open(os.path.join(root, "run", "run.json"), encoding="utf-8") as file:
            order = json.load(file)
    except (EnvironmentError, EOFError, tarfile.TarError, ValueError) as error:
        return refuse(root, "the pod of %s cannot be made ready: %s" % (role, error))
    sys.path.insert(0, os.path.join(local, "lib"))
    if role == KEEPER:
        from yurt.engines.kubernetes.pod.keeper import run as keep

        return keep(order, root)
    from yurt.engines.kubernetes.pod.task import run

    return run(role, order, root)


def refuse(root, text):
    # type: (str, str) -> int
    """Say why nothing runs here: in the log, and where Kubernetes shows it."""
    print("yurt: " + text, file=sys.stdout)
    sys.stdout.flush()
    try:
        with open(termination_log(root), "wb") as file:
            file.write(text.encode("utf-8"))
    except (EnvironmentError, ValueError):
        pass
    return TOO_OLD


def termination_log(root):
    # type: (str) -> str
    """Where the container's last words go."""
    return "/dev/termination-log" if root == ROOT else os.path.join(root, "termination-log")


def unpack(code, local):
    # type: (str, str) -> None
    """The agent's modules (`lib`) and, where they travel in the config maps, the job's files (`work`).

    What is there already is left as it is: a container that starts again in its pod goes on with its folders.
    """
    for name in ("state", "model", "home"):
        make_folder(os.path.join(local, name))
    if os.path.isdir(os.path.join(local, "lib")):
        return
    part = os.path.join(local, ".part")
    archive = os.path.join(local, ".payload")
    with open(archive, "wb") as whole:
        for name in pieces(code):
            with open(os.path.join(code, name), "rb") as piece:
                whole.write(piece.read())
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):  # not before Python 3.11.4
            tar.extraction_filter = tarfile.data_filter
        tar.extractall(part)  # noqa: S202 - our own archive
    for name in ("work", "lib"):  # the last says that all are there
        source, target = os.path.join(part, name), os.path.join(local, name)
        if os.path.isdir(source) and not os.path.isdir(target):
            os.rename(source, target)
    os.remove(archive)


def pieces(code):
    # type: (str) -> list[str]
    """The pieces' names in their order: payload.0, payload.1, ... Raises ValueError where there is none."""
    names = [name for name in os.listdir(code) if name.startswith("payload.")]
    if not names:
        raise ValueError("there is no payload in %s" % code)
    return sorted(names, key=lambda name: int(name.split(".")[1]))


def make_folder(path):
    # type: (str) -> None
    """With those above it, unless it is there."""
    if not os.path.isdir(path):
        os.makedirs(path)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
