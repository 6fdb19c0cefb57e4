"""The API server as a pod speaks to it: the account's token that is mounted, and the standard library."""
# The keeper does without pathlib:
# ruff: noqa: PTH118, PTH123

from __future__ import annotations

import http.client
import json
import os
import ssl
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, urlsplit

from yurt.errors import EngineError

#: Where Kubernetes mounts the account's token, the API server's authority and the namespace.
ACCOUNT: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
_TIMEOUT_S: Final = 15.0


class ApiError(EngineError):
    """What the API server said; `status` is None where it said nothing."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class Api:
    """Speaks JSON to one API server; a connection for each request, since they are few.

    `address` is ``https://host:port``. The token is read for each request: the kubelet puts new ones in its place.
    Every method raises ApiError.
    """

    def __init__(self, address: str, account: str = ACCOUNT) -> None:
        place = urlsplit(address)
        self._host, self._port = place.hostname or "", place.port or 443
        self._account = account
        self._tls = place.scheme == "https"

    def get(self, path: str, query: Mapping[str, str] | None = None) -> dict[str, Any]:
        """An object, or a list of them."""
        return self._call("GET", _with(path, query))

    def create(self, path: str, value: Mapping[str, Any]) -> None:
        """A new object; the server refuses fields that it does not know."""
        self._call("POST", _with(path, {"fieldValidation": "Strict"}), value)

    def delete(self, path: str, propagation: str) -> None:
        """It need not be there. `propagation` is ``Background`` or ``Foreground``."""
        try:
            self._call("DELETE", path, {"propagationPolicy": propagation})
        except ApiError as error:
            if error.status != 404:
                raise

    def changed(self, path: str, query: Mapping[str, str], wait_s: int) -> None:
        """Wait until something changes among the objects of a list since its ``resourceVersion``, or so long."""
        query = {**query, "watch": "1", "timeoutSeconds": str(wait_s)}
        connection = self._connection(wait_s + _TIMEOUT_S)
        try:
            answer = self._send(connection, "GET", _with(path, query), None)
            if answer.status != 200:
                raise _refused(answer.status, answer.read(), "GET", path)
            answer.readline()
        except (OSError, http.client.HTTPException) as error:
            raise _away(error) from error
        finally:
            connection.close()

    def _call(self, method: str, target: str, value: Mapping[str, Any] | None = None) -> dict[str, Any]:
        connection = self._connection(_TIMEOUT_S)
        try:
            answer = self._send(connection, method, target, value)
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            raise _away(error) from error
        finally:
            connection.close()
        if answer.status >= 300:
            raise _refused(answer.status, data, method, target)
        try:
            found: dict[str, Any] = json.loads(data)
        except ValueError as error:
            raise ApiError(f"what answers as the API server speaks no JSON: {data[:80]!r}") from error
        return found

    def _connection(self, timeout_s: float) -> http.client.HTTPConnection:
        if not self._tls:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout_s)
        try:
            context = ssl.create_default_context(cafile=os.path.join(self._account, "ca.crt"))
        except OSError as error:
            raise ApiError(f"{self._account}/ca.crt cannot be read: {error.strerror or error}") from error
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout_s, context=context)

    def _send(
        self, connection: http.client.HTTPConnection, method: str, target: str, value: Mapping[str, Any] | None
    ) -> http.client.HTTPResponse:
        body = None if value is None else json.dumps(value)
        headers = {
            "Authorization": f"Bearer {self._token()}",
            "Accept": "application/json",
            "User-Agent": "yurt-keeper",
        }
        if body is not None:
            headers["Content-Type"] = "application/json"
        connection.request(method, target, body, headers)
        return connection.getresponse()

    def _token(self) -> str:
        with open(os.path.join(self._account, "token"), encoding="ascii") as file:
            return file.read().strip()


def in_cluster(variables: Mapping[str, str], account: str = ACCOUNT) -> Api | None:
    """The API server of this pod's cluster; None where the pod has no account towards it."""
    host, port = variables.get("KUBERNETES_SERVICE_HOST"), variables.get("KUBERNETES_SERVICE_PORT", "443")
    if not host or not os.path.exists(os.path.join(account, "token")):  # noqa: PTH110
        return None
    return Api(f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}", account)


def _with(path: str, query: Mapping[str, str] | None) -> str:
    if not query:
        return path
    return f"{path}?" + "&".join(f"{name}={quote(value, safe='')}" for name, value in query.items())


def _away(error: Exception) -> ApiError:
    return ApiError(
        f"the API server does not answer: {getattr(error, 'strerror', None) or error or type(error).__name__}"
    )


def _refused(status: int, data: bytes, method: str, target: str) -> ApiError:
    try:
        message = json.loads(data)["message"]
    except (ValueError, KeyError, TypeError):
        message = f"{method} {target}: {status}"
    return ApiError(f"the API server refuses: {message}", status)
