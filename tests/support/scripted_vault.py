"""As much of Vault's HTTP API as Nomad 1.0.18 and its templates ask for: tokens for tasks, and two key-value stores."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ROOT = "root-token"
TASKS_TOKEN = "token-of-a-task"


class ScriptedVault:
    """`one` and `two` are what lies below ``kv/`` and ``secret/data/``, stores of version 1 and 2, by path.

    `asked` are the policies that tokens were made with.
    """

    def __init__(self, one: Mapping[str, Mapping[str, str]], two: Mapping[str, Mapping[str, str]]) -> None:
        self.one, self.two = one, two
        self.asked: list[list[str]] = []
        vault = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer({})

            def do_PUT(self) -> None:
                self._answer(json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}"))

            do_POST = do_PUT

            def _answer(self, sent: Mapping[str, Any]) -> None:
                answer = vault.answer(self.path.partition("?")[0].removeprefix("/v1/"), sent)
                data = json.dumps(answer if answer is not None else {"errors": []}).encode()
                self.send_response(200 if answer is not None else 404)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def answer(self, path: str, sent: Mapping[str, Any]) -> dict[str, Any] | None:
        """None is 404."""
        lease = {"client_token": TASKS_TOKEN, "accessor": "a", "renewable": True, "lease_duration": 3600}
        if path in ("sys/seal-status", "sys/health"):
            return {"initialized": True, "sealed": False, "version": "1.6.0", "cluster_name": "c", "cluster_id": "i"}
        if path == "sys/capabilities-self":
            return {"data": {"capabilities": ["root"], sent["path"]: ["root"]}}
        if path.startswith("auth/token/lookup"):
            return {"data": {"id": ROOT, "policies": ["root"], "renewable": False, "ttl": 0, "creation_ttl": 0}}
        if path == "auth/token/create":
            self.asked.append(list(sent["policies"]))
            wrapped = {"token": "w", "accessor": "b", "ttl": 60, "creation_time": "2020-01-01T00:00:00Z"}
            return {"wrap_info": {**wrapped, "wrapped_accessor": "a"}}
        if path in ("sys/wrapping/unwrap", "auth/token/renew-self"):
            return {"auth": lease}
        if path.startswith("sys/internal/ui/mounts/"):
            version = "2" if path.split("/")[4] == "secret" else "1"
            mount = "secret/" if version == "2" else "kv/"
            return {"data": {"path": mount, "type": "kv", "options": {"version": version}}}
        mount, _, name = path.partition("/")
        if mount == "kv" and name in self.one:
            return {"data": dict(self.one[name])}
        if mount == "secret" and name.removeprefix("data/") in self.two:
            return {
                "data": {
                    "data": dict(self.two[name.removeprefix("data/")]),
                    "metadata": {"version": 1, "deletion_time": ""},
                }
            }
        return None

    def close(self) -> None:
        """End it."""
        self._server.shutdown()
        self._server.server_close()
