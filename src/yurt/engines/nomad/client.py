"""Speaks to Nomad's HTTP API: the engine's only I/O.

Over the standard library: `python-nomad`, the one client on PyPI, wraps the same few calls in `requests`, and has
neither the retries that Nomad's elections ask for nor the names of the rights that a refusal leaves out. Facts about
Nomad are of 1.0.18 and, where said, 1.6.1.
"""

from __future__ import annotations

import base64
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from yurt.engines.nomad.address import CA_FILE, CERT_FILE, NomadAddress, NomadAway, NomadError
from yurt.errors import UsageError

#: Seconds that a call may take, and for which one is tried again while the servers elect a leader (2.5 s seen).
_ANSWER_S: Final = 30.0
_PATIENCE_S: Final = 20.0
#: What a server says while it has no leader or has lost it; its agents pass it on as 500.
_PASSING: Final = ("rpc error", "no cluster leader", "failed to get conn", "eof")


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace").strip()[:2000]


class NomadClient:
    """Calls of one cluster. Safe to share between threads: each keeps one connection (Nomad takes 100 an address)."""

    def __init__(self, address: NomadAddress) -> None:
        self.address = address
        self._own = threading.local()
        self._context = _context(address) if address.secure else None

    # What there is.

    def version(self) -> str:
        """The agent's version, such as ``1.6.1``; empty where the token may not ask (`agent: read`)."""
        try:
            answer = self._json("GET", "/v1/agent/self", right='agent { policy = "read" }')
        except NomadError as error:
            if error.status == 403:
                return ""
            raise
        version = answer.get("config", {}).get("Version", "")
        return str(version.get("Version", "") if isinstance(version, Mapping) else version)

    def nodes(self) -> list[dict[str, Any]]:
        """All nodes in short."""
        found: list[dict[str, Any]] = self._json("GET", "/v1/nodes", right='node { policy = "read" }')
        return found

    def node(self, node_id: str) -> dict[str, Any]:
        """One node with its resources and attributes."""
        found: dict[str, Any] = self._json("GET", f"/v1/node/{node_id}", right='node { policy = "read" }')
        return found

    def plan(self, job: Mapping[str, Any]) -> dict[str, Any]:
        """What the scheduler would do with a job, and why not more; nothing is stored."""
        body = {"Job": job, "Diff": False}
        found: dict[str, Any] = self._json("POST", f"/v1/job/{_name(job['ID'])}/plan", body=body, right="submit-job")
        return found

    def register(self, job: Mapping[str, Any]) -> str:
        """Submit a job that must not be there yet; its evaluation's id.

        Sent once: a repeated call would find the job that the first has made.
        """
        body = {"Job": job, "EnforceIndex": True, "JobModifyIndex": 0}
        found: dict[str, Any] = self._json("POST", "/v1/jobs", body=body, right="submit-job", again=False)
        return str(found["EvalID"])

    def change(self, job: Mapping[str, Any]) -> None:
        """Put a job that was read in the place of itself. Raises NomadError where another has changed it since."""
        body = {"Job": job, "EnforceIndex": True, "JobModifyIndex": job["JobModifyIndex"]}
        self._json("POST", "/v1/jobs", body=body, right="submit-job", again=False)

    def deregister(self, job_id: str, *, purge: bool = False) -> None:
        """End all that a job has; no error where there is none."""
        query = {"purge": "true"} if purge else {}
        self._json("DELETE", f"/v1/job/{_name(job_id)}", query, right="submit-job", missing={})

    def job(self, job_id: str) -> dict[str, Any] | None:
        """The job, or None."""
        found: dict[str, Any] | None = self._json("GET", f"/v1/job/{_name(job_id)}", right="read-job", missing=None)
        return found

    def jobs(self) -> list[dict[str, Any]]:
        """All jobs in short."""
        found: list[dict[str, Any]] = self._json("GET", "/v1/jobs", right="list-jobs")
        return found or []

    def allocations(self, job_id: str, index: int = 0, wait_s: float = 0.0) -> tuple[list[dict[str, Any]], int]:
        """The allocations of a job, and the index to wait from; waits for a change where `wait_s` is given."""
        query = {"index": str(index), "wait": f"{wait_s:g}s"} if wait_s else {}
        path = f"/v1/job/{_name(job_id)}/allocations"
        response = self._call("GET", path, query, right="read-job", timeout_s=_ANSWER_S + wait_s * 1.1)
        now = int(self._own.index or 0)
        return json.loads(response.body) or [], now if now >= index else 0

    def evaluations(self, job_id: str) -> list[dict[str, Any]]:
        """All evaluations of a job: those that could place nothing say why."""
        found: list[dict[str, Any]] = self._json(
            "GET", f"/v1/job/{_name(job_id)}/evaluations", right="read-job", missing=[]
        )
        return found or []

    # Files of an allocation. They come from the node, through whichever agent is asked.

    def read_file(self, alloc_id: str, path: str, offset: int) -> bytes | None:
        """A file from byte `offset` to its end; None where it cannot be had: it, its node or its folder is gone.

        Not by ``fs/readat``, which answers 200 with the error's text in place of the file's (1.0.18).
        """
        query = {"path": path, "offset": str(offset), "origin": "start", "follow": "false"}
        answer = self._call("GET", f"/v1/client/fs/stream/{alloc_id}", query, right="read-fs", allowed=(400, 404, 500))
        return _data(answer.body.decode(errors="replace")) if answer.status == 200 else None

    def list_files(self, alloc_id: str, path: str) -> list[str] | None:
        """The names in a folder of an allocation; None where it cannot be had."""
        answer = self._call("GET", f"/v1/client/fs/ls/{alloc_id}", {"path": path}, right="read-fs", allowed=(404, 500))
        return [each["Name"] for each in json.loads(answer.body)] if answer.status == 200 else None

    def folder(self, alloc_id: str, path: str) -> list[dict[str, Any]]:
        """What is in a folder of an allocation: Name, Size in bytes, IsDir. Raises NomadError where it is gone."""
        found: list[dict[str, Any]] = self._json("GET", f"/v1/client/fs/ls/{alloc_id}", {"path": path}, right="read-fs")
        return found or []

    def stream(self, alloc_id: str, path: str, offset: int) -> Iterator[bytes]:
        """A file from byte `offset` on in pieces, however large it is; it may end early, as the connection does."""
        pairs = {"region": self.address.region, "namespace": self.address.namespace}
        query = {"path": path, "offset": str(offset), "origin": "start", "follow": "false"}
        target = f"/v1/client/fs/stream/{alloc_id}"
        self._drop()  # what is left of it after this answer is of no use to other calls
        connection = self._connection()
        try:
            headers = {"X-Nomad-Token": self.address.token} if self.address.token else {}
            known = {k: v for k, v in {**pairs, **query}.items() if v is not None}
            connection.request("GET", f"{target}?{urlencode(known)}", headers=headers)
            response = connection.getresponse()
            if response.status != 200:
                answer = _Answer(response.status, response.read())
                raise self._refusal(answer, "GET", target, "read-fs")
            yield from _pieces(response)
        except (OSError, http.client.HTTPException) as broken:
            raise self._unreachable(broken) from broken
        finally:
            self._drop()

    # How.

    def _json(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        right: str,
        body: Any = None,
        again: bool = True,
        **missing: Any,
    ) -> Any:
        """The answer's JSON. With ``missing=value`` that value stands for 404."""
        answer = self._call(method, path, query, right=right, body=body, again=again, allowed=(404,) if missing else ())
        return missing["missing"] if answer.status == 404 else json.loads(answer.body or b"null")

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        right: str,
        body: Any = None,
        again: bool = True,
        allowed: tuple[int, ...] = (),
        timeout_s: float = _ANSWER_S,
    ) -> _Answer:
        """One call, tried again while the servers pass on that they have no leader, or the connection breaks."""
        pairs = {"region": self.address.region, "namespace": self.address.namespace, **(query or {})}
        target = f"{path}?{urlencode({k: v for k, v in pairs.items() if v is not None})}"
        data = None if body is None else json.dumps(body).encode()
        end = time.monotonic() + _PATIENCE_S
        pause_s = 0.1
        while True:
            try:
                answer = self._once(method, target, data, timeout_s)
                passing = answer.status in (429, 500) and any(w in answer.text.lower() for w in _PASSING)
                if not passing:
                    return self._judged(answer, method, path, right, allowed)
                said = str(self._refusal(answer, method, path, right))
                error: NomadError = NomadAway(said, status=answer.status, text=answer.text)
            except (OSError, http.client.HTTPException) as broken:
                self._drop()
                error = self._unreachable(broken)
                if isinstance(broken, ssl.SSLError | ConnectionRefusedError | socket.gaierror):
                    raise error from broken  # trying again changes none of these
            if not again or time.monotonic() + pause_s > end:
                raise error
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, 2.0)

    def _once(self, method: str, target: str, data: bytes | None, timeout_s: float) -> _Answer:
        connection = self._connection()
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        headers = {"X-Nomad-Token": self.address.token} if self.address.token else {}
        connection.request(method, target, body=data, headers={**headers, "Content-Type": "application/json"})
        if connection.sock is not None:
            connection.sock.settimeout(timeout_s)
        response = connection.getresponse()
        self._own.index = response.headers.get("X-Nomad-Index")
        return _Answer(response.status, response.read())

    def _connection(self) -> http.client.HTTPConnection:
        kept: http.client.HTTPConnection | None = getattr(self._own, "connection", None)
        if kept is None:
            where = (self.address.host, self.address.port)
            if self._context is not None:
                kept = _TlsConnection(*where, self._context, self.address.server_name or self.address.host)
            else:
                kept = http.client.HTTPConnection(*where, timeout=_ANSWER_S)
            self._own.connection = kept
        return kept

    def _drop(self) -> None:
        kept = getattr(self._own, "connection", None)
        if kept is not None:
            kept.close()
            self._own.connection = None

    def _judged(self, answer: _Answer, method: str, path: str, right: str, allowed: tuple[int, ...]) -> _Answer:
        denied = "permission denied" in answer.text.lower()
        if answer.status == 200 or (answer.status in allowed and not denied):
            return answer
        raise self._refusal(answer, method, path, right)

    def _refusal(self, answer: _Answer, method: str, path: str, right: str) -> NomadError:
        """No message of Nomad's names the right that was missing: the call tells it."""
        said = answer.text or f"HTTP {answer.status}"
        lower = said.lower()
        if "permission denied" in lower:
            who = "the token of NOMAD_TOKEN" if self.address.token else "without a token one"
            return NomadError(
                f"Nomad at {self.address.url} refused {method} {path}: {who} lacks `{right}`",
                hint="ask for a token with it, and set NOMAD_TOKEN",
                status=403,
                text=said,
            )
        if "acl token not found" in lower:
            return NomadError(
                f"Nomad at {self.address.url} does not know the token of NOMAD_TOKEN",
                hint="it may have expired, or be one of another cluster",
                status=403,
                text=said,
            )
        if "sent an http request to an https server" in lower:
            return NomadError(
                f"Nomad at {self.address.url} speaks https", hint="write NOMAD_ADDR=https://...", status=400, text=said
            )
        return NomadError(
            f"Nomad at {self.address.url} answered {method} {path} with {answer.status}: {said}",
            status=answer.status,
            text=said,
        )

    def _unreachable(self, error: Exception) -> NomadError:
        url = self.address.url
        if isinstance(error, ssl.SSLCertVerificationError):
            return NomadError(
                f"the certificate of Nomad at {url} is not trusted", hint=f"name its authority: {CA_FILE}"
            )
        if isinstance(error, ssl.SSLError):
            if "WRONG_VERSION_NUMBER" in str(error):
                return NomadError(f"Nomad at {url} speaks no https", hint="write NOMAD_ADDR=http://...")
            return NomadError(
                f"no TLS with Nomad at {url}: {error.reason or error}",
                hint=f"it may ask for a certificate of ours: {CERT_FILE} and its key",
            )
        if isinstance(error, ConnectionRefusedError):
            return NomadAway(
                f"nobody listens at {url}, where Nomad should be",
                hint="set NOMAD_ADDR, or raise a cluster on this machine: yurt cluster dev",
            )
        return NomadAway(f"Nomad at {url} cannot be spoken to: {error or type(error).__name__}", hint="see NOMAD_ADDR")


class _TlsConnection(http.client.HTTPConnection):
    """Checks the certificate against a name of its own: Nomad's are often made out to ``server.global.nomad``."""

    def __init__(self, host: str, port: int, context: ssl.SSLContext, server_name: str) -> None:
        super().__init__(host, port, timeout=_ANSWER_S)
        self._context = context
        self._server_name = server_name

    def connect(self) -> None:
        """As the plain connection, with TLS over it."""
        super().connect()
        self.sock = self._context.wrap_socket(self.sock, server_hostname=self._server_name)


def _data(frames: str) -> bytes:
    """The bytes in a stream of frames: JSON values one after another, empty ones for a sign of life."""
    decoder, found, at = json.JSONDecoder(), b"", 0
    while at < len(frames):
        try:
            frame, at = decoder.raw_decode(frames, at)
        except ValueError:
            break  # the stream broke: the rest is asked for again
        found += base64.b64decode(frame.get("Data") or "")
    return found


def _pieces(response: http.client.HTTPResponse) -> Iterator[bytes]:
    """As `_data`, of an answer that is still coming."""
    decoder, text = json.JSONDecoder(), ""
    while True:
        try:
            came = response.read1(1 << 16)
        except http.client.IncompleteRead:
            return
        text += came.decode("ascii", errors="replace")
        at = 0
        while at < len(text):
            try:
                frame, at = decoder.raw_decode(text, at)
            except ValueError:
                break
            if data := base64.b64decode(frame.get("Data") or ""):
                yield data
        text = text[at:]
        if not came:
            return


def _name(job_id: str) -> str:
    return quote(job_id, safe="")


def _context(address: NomadAddress) -> ssl.SSLContext:
    """Raises UsageError for a file that cannot be used."""
    try:
        context = ssl.create_default_context(cafile=address.ca_file, capath=address.ca_path)
        if address.cert_file:
            context.load_cert_chain(address.cert_file, address.key_file)
    except OSError as error:
        files = [address.ca_file, address.ca_path, address.cert_file, address.key_file]
        raise UsageError(
            f"the certificates for Nomad cannot be used: {error} ({', '.join(filter(None, files))})"
        ) from error
    if not address.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context
