"""Stands between a launcher and a real Nomad, and can hold back the submission of a job: before it, or its answer."""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit


class InBetween(ThreadingHTTPServer):
    """`hold` is ``before`` (Nomad never hears of the job) or ``after`` (it has it, and nobody is told so)."""

    daemon_threads = True

    def __init__(self, nomad: str, hold: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.nomad = urlsplit(nomad)
        self.hold = hold
        self.held = threading.Event()
        self.over = threading.Event()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, *_: Any) -> None:
        """Whoever asked is gone."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: InBetween

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        submits = self.command == "POST" and self.path.partition("?")[0] == "/v1/jobs"
        if submits and self.server.hold == "before":
            self._hold()
        nomad = http.client.HTTPConnection(str(self.server.nomad.hostname), self.server.nomad.port, timeout=60)
        nomad.request(self.command, self.path, body, {"Content-Type": "application/json"})
        answer = nomad.getresponse()
        data = answer.read()
        nomad.close()
        if submits:
            self._hold()
        self.send_response(answer.status)
        self.send_header("X-Nomad-Index", answer.headers.get("X-Nomad-Index", "0"))
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    do_GET = do_POST = do_DELETE = _pass_on

    def _hold(self) -> None:
        self.server.held.set()
        self.server.over.wait()
        raise ConnectionAbortedError

    def log_message(self, *_: Any) -> None:
        """Nothing is written."""


@contextmanager
def in_between(nomad: str, hold: str) -> Iterator[InBetween]:
    """For as long as it is needed."""
    server = InBetween(nomad, hold)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
