"""A connection to one cluster's API server, by the maintained client of Kubernetes: the one file that imports it.

The client reads kubeconfig files with their contexts, certificates, tokens and credential plugins, renews what
expires, and speaks the port-forward protocol. Requests are sent as JSON over its connection pool: what Yurt renders is
what is sent, and objects of kinds that the client has no class for (a TFJob) are no special case.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from yurt.errors import EngineError, UsageError

#: Where a pod finds its own account.
_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
#: Connections that may be open at once: a log that is followed keeps one.
_CONNECTIONS: Final = 256
#: What urllib3 puts before the words that matter.
_NOISE: Final = re.compile(
    r"^(HTTPS?Connection\([^)]*\): )?(Failed to establish a new connection: )?(\[Errno -?\d+\] )?"
)
_INSTALL: Final = "pip install 'yurt[kubernetes]'"


class Unreachable(EngineError):
    """Nobody answers as the API server, or the connection broke: asking again may help."""

    retryable = True


class Socket(Protocol):
    """What a forwarded port gives: a connected socket."""

    def recv(self, size: int) -> bytes: ...  # noqa: D102
    def sendall(self, data: bytes) -> None: ...  # noqa: D102
    def shutdown(self, how: int) -> None: ...  # noqa: D102
    def close(self) -> None: ...  # noqa: D102


@dataclass(frozen=True, slots=True)
class Answer:
    """A response, whatever its status."""

    status: int
    body: bytes

    def json(self) -> Any:
        """The body's value; an empty mapping where it is no JSON."""
        try:
            return json.loads(self.body)
        except ValueError:
            return {}


class Stream:
    """A response that is still coming."""

    def __init__(self, response: Any) -> None:
        self.status: int = response.status
        self._response = response
        self._closed = False

    def read_all(self) -> bytes:
        """What is left of it, for an answer that is an error."""
        data: bytes = self._response.read()
        self._response.release_conn()
        return data

    def pieces(self) -> Iterator[bytes]:
        """As they come, until the server ends it. Raises Unreachable where the connection breaks, or was closed."""
        import urllib3

        try:
            while piece := self._response.read1(1 << 16):
                yield piece
        except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError) as error:
            raise Unreachable(f"the API server broke off: {error}") from error
        if self._closed:  # what was read is not all
            raise Unreachable("the connection was closed")

    def close(self) -> None:
        """From any thread."""
        import contextlib
        import socket

        self._closed = True
        with contextlib.suppress(Exception):  # whatever state it is in, it is not wanted any more
            self._response._connection.sock.shutdown(socket.SHUT_RDWR)  # noqa: SLF001 - wakes the thread that reads
        with contextlib.suppress(Exception):
            self._response.close()


class Session:
    """One cluster as one person, with the namespace that is meant where none is named. Safe to share by threads."""

    def __init__(self, api: Any, *, namespace: str, where: str, context: str | None) -> None:
        self._api = api
        self.namespace = namespace
        #: For people: the context and the server, or that this is inside the cluster.
        self.where = where
        #: The context's name, by which another process of this machine finds the same cluster.
        self.context = context

    @property
    def server(self) -> str:
        """The API server's address."""
        return str(self._api.configuration.host)

    def request(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        content_type: str = "application/json",
        timeout_s: float = 30.0,
    ) -> Answer:
        """One request and its whole answer. Raises Unreachable."""
        response = self._send(method, path, query, body, content_type, timeout_s, timeout_s)
        data: bytes = response.data
        return Answer(response.status, data)

    def stream(self, path: str, query: Mapping[str, str] | None = None, *, silent_s: float | None = None) -> Stream:
        """A GET whose answer goes on. `silent_s` without a byte is a broken connection. Raises Unreachable."""
        return Stream(self._send("GET", path, query, None, "application/json", 30.0, silent_s, preload=False))

    def forward(self, namespace: str, pod: str, port: int) -> Socket:
        """A connection to a port of a pod, through the API server and the pod's kubelet. Raises EngineError.

        Needs ``create`` of ``pods/portforward`` (and ``get``, which Kubernetes asks of a client of WebSockets).
        """
        from kubernetes import client
        from kubernetes.stream import portforward

        _be_quiet_about_broken_forwards()
        try:
            core = client.CoreV1Api(self._api)
            opened = portforward(
                core.connect_get_namespaced_pod_portforward, pod, namespace, ports=str(port), _request_timeout=30
            )
            found: Socket = opened.socket(port)
            return found
        except client.ApiException as error:
            message = f"the port {port} of the pod {pod} cannot be reached through {self.where}: {error.reason}"
            raise Unreachable(" ".join(message.split())) from error
        except Exception as error:
            raise Unreachable(f"the port {port} of the pod {pod} cannot be reached: {error}") from error

    def run(self, namespace: str, pod: str, container: str, command: list[str]) -> tuple[str, str, int]:
        """Run a command in a container: what it printed, its complaints, its exit code. Raises EngineError.

        Needs ``create`` and ``get`` of ``pods/exec``. Both outputs have to be text: the client decodes them.
        """
        from kubernetes import client
        from kubernetes.stream import stream

        try:
            opened = stream(
                client.CoreV1Api(self._api).connect_get_namespaced_pod_exec,
                pod,
                namespace,
                container=container,
                command=command,
                stdout=True,
                stderr=True,
                stdin=False,
                tty=False,
                _preload_content=False,
            )
            printed, complaints = [], []
            while opened.is_open():
                opened.update(timeout=5)
                printed.append(opened.read_stdout() if opened.peek_stdout() else "")
                complaints.append(opened.read_stderr() if opened.peek_stderr() else "")
            return "".join(printed), "".join(complaints), int(opened.returncode or 0)
        except client.ApiException as error:
            raise EngineError(f"nothing can be run in the pod {pod}: {' '.join(str(error.reason).split())}") from error
        except Exception as error:
            raise Unreachable(f"the pod {pod} cannot be reached: {error}") from error

    def _send(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None,
        body: Any,
        content_type: str,
        connect_s: float,
        read_s: float | None,
        *,
        preload: bool = True,
    ) -> Any:
        import urllib3

        headers = {"Accept": "application/json", "User-Agent": "yurt"}
        try:
            for each in self._api.configuration.auth_settings().values():
                headers[each["key"]] = each["value"]
            if body is not None:
                headers["Content-Type"] = content_type
            return self._api.rest_client.pool_manager.request(
                method,
                f"{self.server}{path}" + (f"?{urlencode(query)}" if query else ""),
                body=None if body is None else json.dumps(body).encode(),
                headers=headers,
                timeout=urllib3.Timeout(connect=connect_s, read=read_s),
                retries=False,
                preload_content=preload,
            )
        except urllib3.exceptions.SSLError as error:
            raise EngineError(
                f"the API server at {self.server} is not trusted: {_last(error)}",
                hint="see certificate-authority in the kubeconfig",
            ) from error
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(
                f"no API server answers at {self.server}: {_last(error)}",
                hint="is the cluster up, and the right context chosen? see `kubectl config current-context`",
            ) from error


def open_session(context: str | None = None, namespace: str | None = None) -> Session:
    """By the kubeconfig that kubectl would take (KUBECONFIG, else ~/.kube/config); inside a pod by its own account.

    Raises:
        UsageError: the context is not in the kubeconfig.
        EngineError: there is no kubeconfig, it cannot be read, or its credential plugin fails.
    """
    try:
        from kubernetes import client, config
    except ModuleNotFoundError:
        raise EngineError("the client of Kubernetes is not installed here", hint=_INSTALL) from None
    logging.getLogger("kubernetes").setLevel(logging.CRITICAL)  # what fails is raised, and said once
    logging.getLogger("urllib3").setLevel(logging.ERROR)
    configuration = client.Configuration()
    if context is None and _inside():
        config.load_incluster_config(client_configuration=configuration)
        own = (_ACCOUNT / "namespace").read_text().strip()
        return _session(client.ApiClient, configuration, namespace or own, "this pod's cluster", None)
    # The client itself looks at the variable once, when it is imported.
    file = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube/config")
    try:
        contexts, current = config.list_kube_config_contexts(file)
    except config.ConfigException as error:
        raise EngineError(
            f"no cluster is known: {_last(error)}",
            hint="set KUBECONFIG to your cluster's file, as for kubectl",
        ) from error
    except Exception as error:
        raise EngineError(f"the kubeconfig cannot be read: {_last(error)}") from error
    found = next((each for each in contexts if each["name"] == context), None) if context else current
    if found is None:
        names = ", ".join(each["name"] for each in contexts)
        raise UsageError(f"the kubeconfig has no context {context!r}", hint=f"it has {names}")
    try:
        config.load_kube_config(file, found["name"], client_configuration=configuration, persist_config=False)
    except Exception as error:
        raise EngineError(f"the kubeconfig's context {found['name']} cannot be used: {_last(error)}") from error
    namespace = namespace or found.get("context", {}).get("namespace") or "default"
    where = f"context {found['name']} ({configuration.host})"
    return _session(client.ApiClient, configuration, namespace, where, found["name"])


def _be_quiet_about_broken_forwards() -> None:
    """The client's threads raise where a forwarded connection breaks, and have closed it: its user sees that."""
    before = threading.excepthook
    if getattr(before, "of_yurt", False):
        return

    def hook(fault: threading.ExceptHookArgs) -> None:
        if fault.thread is None or not fault.thread.name.startswith("Kubernetes port forward"):
            before(fault)

    hook.of_yurt = True  # type: ignore[attr-defined]
    threading.excepthook = hook


def _session(client: Any, configuration: Any, namespace: str, where: str, context: str | None) -> Session:
    configuration.connection_pool_maxsize = _CONNECTIONS
    configuration.socket_options = _keepalive()
    return Session(client(configuration), namespace=namespace, where=where, context=context)


def _keepalive() -> list[tuple[int, int, int]]:
    """So that a watch or a log whose server has vanished without a word breaks within about a minute."""
    import socket

    found = [(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1), (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):  # Linux; elsewhere the system's own times
            found.append((socket.IPPROTO_TCP, getattr(socket, name), value))
    return found


def _inside() -> bool:
    """In a pod, and nobody has said otherwise."""
    named = os.environ.get("KUBECONFIG") or (Path.home() / ".kube/config").exists()
    return not named and "KUBERNETES_SERVICE_HOST" in os.environ and (_ACCOUNT / "token").exists()


def _last(error: BaseException) -> str:
    """The innermost words of an error, in one line."""
    reason = getattr(error, "reason", None)
    text = str(reason if isinstance(reason, Exception) else error)
    text = _NOISE.sub("", " ".join(text.rsplit("Caused by", maxsplit=1)[-1].split()))
    return text[:300] or type(error).__name__
