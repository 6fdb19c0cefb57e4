"""A port that nobody else gets: held from the rendezvous until the task's process has bound it."""

from __future__ import annotations

import socket
import threading

from yurt.contract.state import NO_NAME
from yurt.contract.tf_config import split_host_port


class HeldPort:
    """A TCP port bound by this agent, which TensorFlow's server can bind as well.

    The socket is bound with SO_REUSEADDR. While it does not listen, another socket with SO_REUSEADDR may bind the
    same port (TensorFlow 2.21's does) but no bind(0) anywhere is given it. During the peer check it listens and
    tells who it is; `stop_listening` then shuts it down for reading, which on Linux ends the listening and keeps
    the port, since the port was bound by number.
    """

    def __init__(self, bind_host: str = "", port: int = 0) -> None:
        family = socket.AF_INET6 if ":" in bind_host else socket.AF_INET
        if port == 0:
            # Linux gives up the port of a socket bound to port 0 when it stops listening; one bound by number keeps it.
            with _bound(family, bind_host, 0) as first:
                self._socket = _bound(family, bind_host, first.getsockname()[1])
        else:
            self._socket = _bound(family, bind_host, port)
        self.port: int = self._socket.getsockname()[1]

    def listen(self, greeting: str) -> None:
        """Answer every connection with `greeting` and close it, until `stop_listening`."""
        self._socket.listen(128)
        threading.Thread(target=self._answer, args=(greeting.encode(),), daemon=True).start()

    def _answer(self, greeting: bytes) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            try:
                with connection:
                    connection.settimeout(2)
                    connection.sendall(greeting)
            except OSError:
                pass  # the other side asks again

    def stop_listening(self) -> None:
        """Hand the port over to the task's process: from now on it may listen there."""
        try:
            self._socket.shutdown(socket.SHUT_RD)
        except OSError:
            pass  # it was not listening

    def close(self) -> None:
        """Release the port."""
        self.stop_listening()
        self._socket.close()


def own_port(bind_host: str, wanted: int | None) -> HeldPort:
    """The port that was set aside for the task; a free one where there is none or another process has it."""
    if wanted is not None:
        try:
            return HeldPort(bind_host, wanted)
        except OSError:
            pass  # set aside in the engine's books only: whoever binds it first has it
    return HeldPort(bind_host)


def _bound(family: socket.AddressFamily, host: str, port: int) -> socket.socket:
    held = socket.socket(family, socket.SOCK_STREAM)
    try:
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        held.bind((host, port))
    except OSError:
        held.close()
        raise
    return held


def greeting(run_id: str, generation: int, task: str) -> str:
    """What a task's port says during the peer check: one line that is the task's identity."""
    return f"yurt {run_id} {generation} {task}\n"


def meet(address: str, expected: str, timeout_s: float) -> str | None:
    """Connect to a peer and read its greeting; None if it is the expected one, else what was wrong."""
    try:
        with socket.create_connection(split_host_port(address), timeout=timeout_s) as connection:
            connection.settimeout(timeout_s)
            said = b""
            while not said.endswith(b"\n") and len(said) < 1024:
                part = connection.recv(1024)
                if not part:
                    break
                said += part
    except TimeoutError:
        return "no answer (a firewall?)"
    except socket.gaierror as error:
        return f"{NO_NAME} ({error.strerror or error})"
    except OSError as error:
        return error.strerror or str(error)
    if said.decode(errors="replace") != expected:
        return "something else answers there"
    return None
