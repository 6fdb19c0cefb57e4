"""A store that answers from a script, to the byte."""

from __future__ import annotations

import contextlib
import socket
import threading


def reply(body=b"true", status=200, headers=b"X-Consul-Index: 5\r\n"):
    return b"HTTP/1.1 %d Some Reason\r\n" % status + headers + b"Content-Length: %d\r\n\r\n" % len(body) + body


class Scripted:
    """Answers each request of each connection from a script: a list of lists of bytes (None: hang up)."""

    def __init__(self, *connections, wrap=None):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.requests = []
        self._connections = connections
        self._wrap = wrap
        self._open = []
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self):
        with contextlib.suppress(OSError):
            for script in self._connections:
                sock, _ = self._listener.accept()
                if self._wrap:
                    sock = self._wrap(sock)
                self._open.append(sock)
                for data in script:
                    self.requests.append(sock.recv(1 << 20))
                    if data is None:
                        break
                    sock.sendall(data)
                if script and script[-1] is None:
                    sock.close()

    def close(self):
        self._listener.close()
        for sock in self._open:
            sock.close()
