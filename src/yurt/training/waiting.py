"""Says for whom a task waits. TensorFlow 2.21 waits for the other tasks in silence, for up to an hour.

A process of its own says it: while TensorFlow waits it holds Python's lock, so that no thread of the task can run.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from yurt.contract import names
from yurt.training.place import Place

#: Seconds until it is said first, and between one time and the next.
FIRST_S: Final = 20.0
AGAIN_S: Final = 60.0
#: Seconds that a peer has to take a connection.
_CONNECT_S: Final = 3.0
_PROGRAM: Final = (
    "import os, sys; sys.path[:] = sys.argv[1].split(os.pathsep); from yurt.training.waiting import tell; "
    "tell(sys.argv[2], float(sys.argv[3]), float(sys.argv[4]), sys.argv[5:])"
)


@contextmanager
def telling_who_is_missing(here: Place, first_s: float = FIRST_S, again_s: float = AGAIN_S) -> Iterator[None]:
    """While the block waits, name on standard error the peers at whose address nobody answers.

    In a run of Yurt's nobody needs to be told: its agents have met before a task starts, and watch one another.
    """
    child = None if os.environ.get(names.RUN_ID) else _start(here, first_s, again_s)
    try:
        yield
    finally:
        if child is not None:
            child.kill()
            child.communicate()


def tell(task: str, first_s: float, again_s: float, peers: Sequence[str]) -> None:
    """The other process: until standard input ends, which it does with the task. `peers` are ``worker/1=host:port``."""
    wait_s = first_s
    while not select.select([sys.stdin], [], [], wait_s)[0]:
        wait_s = again_s
        missing = [peer.replace("=", " at ") for peer in peers if not _answers(peer.partition("=")[2])]
        if missing:
            print(f"yurt: {task} waits for {', '.join(missing)}: nobody answers", file=sys.stderr, flush=True)


def _start(here: Place, first_s: float, again_s: float) -> subprocess.Popen[bytes] | None:
    named = ((f"{role}/{index}", address) for role, all_ in here.cluster.items() for index, address in enumerate(all_))
    peers = [f"{task}={address}" for task, address in named if task != here.task]
    command = [sys.executable, "-c", _PROGRAM, os.pathsep.join(sys.path), here.task, str(first_s), str(again_s), *peers]
    try:
        return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)
    except OSError:
        return None  # no more processes, or too many peers for a command line: it waits in silence


def _answers(address: str) -> bool:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S).close()
    except OSError:
        return False
    return True
