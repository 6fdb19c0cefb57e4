"""An API server of Kubernetes as far as a keeper uses it: lists, watches, creates, deletes; says no where it is told."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit


class ScriptedApi:
    """`objects` by plural and name. A TFJob that is deleted in the foreground stays until `finish`."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, dict[str, Any]]] = {"tfjobs": {}, "pods": {}, "jobs": {}}
        self.asked: list[tuple[str, str]] = []
        self.tokens: set[str] = set()
        self.forbidden: set[str] = set()  # methods
        self.version = 1
        self._changed = threading.Condition()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def answer(self, status: int, value: Any) -> None:
                data = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def handle_any(self) -> None:
                url = urlsplit(self.path)
                query = {name: each[0] for name, each in parse_qs(url.query).items()}
                parts = url.path.split("/")
                where = parts.index("namespaces") + 2
                plural, name = parts[where], parts[where + 1] if len(parts) > where + 1 else ""
                length = int(self.headers.get("Content-Length") or 0)
                body = json.loads(self.rfile.read(length)) if length else None
                outer.asked.append((self.command, plural))
                outer.tokens.add(self.headers["Authorization"])
                if self.command in outer.forbidden:
                    self.answer(403, {"message": f'{plural} is forbidden: User "me" cannot {self.command}'})
                elif "watch" in query:
                    self.watch(int(query["resourceVersion"]), float(query["timeoutSeconds"]))
                elif self.command == "GET":
                    version = str(outer.version)  # before them: what comes in between is seen twice, never missed
                    items = list(outer.objects[plural].values())
                    self.answer(200, {"metadata": {"resourceVersion": version}, "items": items})
                elif self.command == "POST":
                    status = 409 if body["metadata"]["name"] in outer.objects[plural] else 201
                    if status == 201:
                        outer.put(plural, body)
                    self.answer(status, {"message": "already exists"})
                elif name not in outer.objects[plural]:
                    self.answer(404, {"message": "not found"})
                else:
                    found = outer.objects[plural][name]
                    if body["propagationPolicy"] == "Foreground":
                        found["metadata"]["deletionTimestamp"] = "2026-12-01T00:00:00Z"
                        outer.touch()
                    else:
                        outer.remove(plural, name)
                    self.answer(200, found)

            do_GET = do_POST = do_DELETE = handle_any

            def watch(self, version: int, wait_s: float) -> None:
                end = time.monotonic() + wait_s
                with outer._changed:
                    while outer.version <= version and time.monotonic() < end:
                        outer._changed.wait(0.1)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b'{"type": "MODIFIED"}\n')

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def put(self, plural: str, value: dict[str, Any]) -> None:
        value = {"status": {}, **value}
        self.objects[plural][value["metadata"]["name"]] = value
        self.touch()

    def remove(self, plural: str, name: str) -> None:
        self.objects[plural].pop(name, None)
        self.touch()

    def touch(self) -> None:
        with self._changed:
            self.version += 1
            self._changed.notify_all()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
