"""An S3 for tests: moto's server on loopback, and a proxy in front of it that misbehaves as told.

::

    with MotoS3() as s3, FlakyS3(s3.url) as proxy:
        s3.make_bucket("models")
        proxy.fail(method="PUT", times=3, status=503, code="SlowDown")   # then it works
        ...  # AWS_ENDPOINT_URL=proxy.url
        assert proxy.requests[0].status == 503

For processes of their own, give them `environment(url)`.
"""

from __future__ import annotations

import contextlib
import http.client
import re
import ssl
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, Self
from urllib.parse import unquote, urlsplit

Action = Literal["answer", "corrupt", "truncate", "hang", "cut"]
SECRET = "moto-secret-Zm9vYmFy/+x"
ACCESS_KEY = "AKIAYURTTESTING00000"


def environment(url: str) -> dict[str, str]:
    """Variables that make any S3 client talk to `url`; the metadata service is a closed port."""
    return {
        "AWS_ENDPOINT_URL": url,
        "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_METADATA_ENDPOINT": "http://127.0.0.1:9",
    }


class MotoS3:
    """moto's server in a thread, at an address of this machine."""

    def __init__(self, address: str = "127.0.0.1") -> None:
        from moto.server import ThreadedMotoServer

        self._server = ThreadedMotoServer(ip_address=address, port=0, verbose=False)
        self._client: Any = None

    def __enter__(self) -> Self:
        import logging

        from werkzeug.serving import WSGIRequestHandler

        # Small answers in two writes would wait 40 ms for an acknowledgement each.
        WSGIRequestHandler.disable_nagle_algorithm = True

        logging.getLogger("werkzeug").setLevel(logging.ERROR)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.url = f"http://{host}:{port}"
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stop()

    def client(self) -> Any:
        """A boto3 client that goes past every proxy (one for all: making it takes a while)."""
        if self._client is None:
            import boto3

            self._client = boto3.client(
                "s3",
                endpoint_url=self.url,
                region_name="us-east-1",
                aws_access_key_id=ACCESS_KEY,
                aws_secret_access_key=SECRET,
            )
        return self._client

    def make_bucket(self, name: str) -> None:
        self.client().create_bucket(Bucket=name)

    def objects(self, bucket: str) -> dict[str, bytes]:
        """Everything in a bucket; small buckets only."""
        client = self.client()
        listed = client.list_objects_v2(Bucket=bucket).get("Contents", [])
        return {o["Key"]: client.get_object(Bucket=bucket, Key=o["Key"])["Body"].read() for o in listed}


@dataclass
class Fault:
    """Which requests misbehave, how, and how often. `path` is a regular expression over the decoded path."""

    method: str | None
    path: str
    skip: int
    times: int | None
    action: Action
    status: int
    code: str
    met: int = 0

    def strikes(self, method: str, path: str) -> bool:
        if (self.method not in (None, method)) or not re.search(self.path, path):
            return False
        self.met += 1
        over = self.times is not None and self.met > self.skip + self.times
        return self.met > self.skip and not over


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    query: str
    status: int | None
    body_bytes: int


@dataclass
class FlakyS3:
    """A proxy on loopback. Without faults it only passes on and writes down."""

    upstream: str
    requests: list[Request] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    tls: ssl.SSLContext | None = None

    def fail(
        self,
        *,
        method: str | None = None,
        path: str = "",
        skip: int = 0,
        times: int | None = None,
        action: Action = "answer",
        status: int = 503,
        code: str = "SlowDown",
    ) -> None:
        """From the request after the first `skip` that match, `times` of them (None: for ever) misbehave.

        answer: `status` with S3's XML error `code`. corrupt: the body's last byte is changed on the way.
        truncate: the body's last byte is lost. hang: no answer until the proxy ends. cut: connection closed.
        """
        self.faults.append(Fault(method, path, skip, times, action, status, code))

    def paths(self, method: str) -> list[str]:
        """The decoded paths of the requests of one method that were passed on, in order."""
        return [r.path for r in self.requests if r.method == method and r.status and r.status < 300]

    def __enter__(self) -> Self:
        proxy = self
        self._lock = threading.Lock()
        self._ending = threading.Event()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True
            wbufsize = -1  # headers and body in one write

            def handle_one_request(self) -> None:
                with contextlib.suppress(ConnectionError, ssl.SSLError):
                    super().handle_one_request()

            def log_message(self, *_: object) -> None:
                pass

            def do_ANY(self) -> None:
                proxy._serve(self)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = do_ANY

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 64

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http{'s' if self.tls else ''}://127.0.0.1:{self._server.server_port}"
        if self.tls is not None:
            self._server.socket = self.tls.wrap_socket(self._server.socket, server_side=True)
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._server.shutdown()
        self._server.server_close()

    def _serve(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers.get("Content-Length") or 0))
        url = urlsplit(handler.path)
        path = unquote(url.path)
        method = handler.command
        with self._lock:
            fault = next((f for f in self.faults if f.strikes(method, path)), None)

        def note(status: int | None) -> None:
            with self._lock:
                self.requests.append(Request(method, path, url.query, status, len(body)))

        if fault is not None and fault.action == "hang":
            note(None)
            self._ending.wait(60)
            handler.close_connection = True
            return
        if fault is not None and fault.action == "cut":
            note(None)
            handler.close_connection = True
            return
        if fault is not None and fault.action == "answer":
            note(fault.status)
            text = f"<Error><Code>{fault.code}</Code><Message>as the test asked</Message></Error>".encode()
            self._answer(handler, fault.status, [("Content-Type", "application/xml")], text, len(text))
            return
        sent = body
        if fault is not None and body:
            sent = body[:-1] + bytes([body[-1] ^ 1]) if fault.action == "corrupt" else body[:-1]
        connection = http.client.HTTPConnection(urlsplit(self.upstream).netloc, timeout=30)
        try:
            headers = {k: v for k, v in handler.headers.items() if k.lower() not in ("content-length", "connection")}
            connection.request(
                method, handler.path, body=sent or None, headers=headers | {"Content-Length": str(len(sent))}
            )
            answer = connection.getresponse()
            content = answer.read()
            note(answer.status)
            length = int(answer.getheader("Content-Length") or len(content)) if method == "HEAD" else len(content)
            kept = [
                (k, v)
                for k, v in answer.getheaders()
                if k.lower() not in ("content-length", "connection", "transfer-encoding")
            ]
            self._answer(handler, answer.status, kept, content, length)
        finally:
            connection.close()

    @staticmethod
    def _answer(
        handler: BaseHTTPRequestHandler, status: int, headers: list[tuple[str, str]], content: bytes, length: int
    ) -> None:
        handler.send_response_only(status)
        for name, value in headers:
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(length))
        handler.end_headers()
        if handler.command != "HEAD":
            handler.wfile.write(content)
