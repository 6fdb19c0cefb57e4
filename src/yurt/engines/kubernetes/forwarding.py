"""A port of this machine that leads to the run's store in the cluster, for as long as somebody here looks at the run.

Each connection is forwarded for itself, through the API server and the kubelet of the keeper's node, the way that
logs take too: no firewall rule is needed, and a keeper that comes back on another node is found by the next one.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Final

from yurt.engines.kubernetes.session import Socket
from yurt.errors import EngineError

_PIECE_BYTES: Final = 1 << 16


class Forwarding:
    """Listens on loopback; `connect` makes a connection to the store, or raises EngineError while there is none.

    A caller whose connection cannot be made finds its own closed without an answer, as from a store that is away. Who
    is on this machine can connect, and needs the run's token to be answered.
    """

    def __init__(self, connect: Callable[[], Socket]) -> None:
        self._connect = connect
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._open: set[Socket] = set()
        self._lock = threading.Lock()
        #: Why the last connection could not be made; None where it could.
        self.problem: str | None = None
        threading.Thread(target=self._listen, name="forwarding", daemon=True).start()

    @property
    def address(self) -> str:
        """``http://127.0.0.1:port``."""
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        """End it and all of its connections."""
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._lock:
            for each in self._open:
                _close(each)

    def _listen(self) -> None:
        while True:
            try:
                here, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(here,), name="forwarded", daemon=True).start()

    def _serve(self, here: socket.socket) -> None:
        try:
            there = self._connect()
            self.problem = None
        except EngineError as error:
            self.problem = str(error)
            _close(here)
            return
        with self._lock:
            self._open |= {here, there}
        back = threading.Thread(target=_pump, args=(there, here), name="forwarded-back", daemon=True)
        back.start()
        _pump(here, there)
        back.join()
        with self._lock:
            self._open -= {here, there}


def _pump(source: Socket, target: Socket) -> None:
    """Until one of the two is closed; then both are."""
    with contextlib.suppress(OSError):
        while data := source.recv(_PIECE_BYTES):
            target.sendall(data)
    _close(source)
    _close(target)


def _close(each: Socket) -> None:
    with contextlib.suppress(OSError):
        each.shutdown(socket.SHUT_RDWR)
    with contextlib.suppress(OSError):
        each.close()
