"""Calls to the API server, and its refusals in words."""

from __future__ import annotations

import codecs
import json
import re
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from yurt.engines.kubernetes import kinds
from yurt.engines.kubernetes.kinds import Kind, kind_of
from yurt.engines.kubernetes.session import Answer, Session, Stream, Unreachable
from yurt.errors import EngineError

#: Seconds for which a call is tried again while the API server, or a webhook that it asks, is not there.
PATIENCE_S: Final = 20.0
#: Who has put a field there, for server-side apply.
MANAGER: Final = "yurt"
#: Answers that another try may mend.
_PASSING: Final = (429, 500, 502, 503, 504)
_WEBHOOK: Final = "failed calling webhook"
_FORBIDDEN: Final = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\S+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
    r'(?: in the namespace "(?P<namespace>[^"]*)")?'
)


class KubernetesError(EngineError):
    """A refusal: `status` is HTTP's, `reason` Kubernetes' own word such as ``AlreadyExists``."""

    def __init__(
        self, message: str, *, status: int, reason: str = "", hint: str | None = None, missing_right: bool = False
    ) -> None:
        super().__init__(message, hint=hint)
        self.status = status
        self.reason = reason
        #: The account lacks a right, and `message` says which.
        self.missing_right = missing_right


class Expired(EngineError):
    """A watch began at a version that the API server no longer knows: read again."""


class Client:
    """Calls of one cluster. Safe to share between threads. Every method raises KubernetesError or Unreachable."""

    def __init__(self, session: Session, *, patience_s: float = PATIENCE_S) -> None:
        self.session = session
        self._patience_s = patience_s
        #: Requests sent, for who wants to know what watching costs.
        self.requests = 0

    @property
    def namespace(self) -> str:
        """The namespace where none is named."""
        return self.session.namespace

    def version(self) -> str:
        """The API server's, such as ``v1.36.3``."""
        return str(self._call("GET", "/version").get("gitVersion", ""))

    def get(self, kind: Kind, name: str, namespace: str | None = None) -> dict[str, Any] | None:
        """One object; None where there is none."""
        found: dict[str, Any] | None = self._call("GET", kind.path(namespace or self.namespace, name), missing=None)
        return found

    def list(
        self, kind: Kind, namespace: str | None = None, *, labels: str = "", fields: str = "", everywhere: bool = False
    ) -> dict[str, Any]:
        """``{"items": [...], "metadata": {"resourceVersion": ...}}``, by selectors in Kubernetes' own words."""
        path = kind.path(namespace or self.namespace)
        if everywhere:
            path = path.replace(f"/namespaces/{namespace or self.namespace}", "")
        found: dict[str, Any] = self._call("GET", path, _selecting(labels, fields))
        return found

    def create(
        self, value: Mapping[str, Any], namespace: str | None = None, *, dry_run: bool = False
    ) -> dict[str, Any]:
        """Make an object, with unknown fields refused. Waits for a webhook that is not there yet.

        Sent again only where the first was certainly not taken.
        """
        query = {"fieldValidation": "Strict", **({"dryRun": "All"} if dry_run else {})}
        path = kind_of(value).path(namespace or self.namespace)
        found: dict[str, Any] = self._call("POST", path, query, value)
        return found

    def apply(
        self,
        value: Mapping[str, Any],
        namespace: str | None = None,
        *,
        kind: Kind | None = None,
        dry_run: bool = False,
        force: bool = True,
    ) -> dict[str, Any]:
        """Make an object what `value` says of it, by the server's own merge (server-side apply)."""
        query = {"fieldManager": MANAGER, "force": str(force).lower(), **({"dryRun": "All"} if dry_run else {})}
        name = value["metadata"]["name"]
        space = value["metadata"].get("namespace") or namespace or self.namespace
        path = (kind or kind_of(value)).path(space, name)
        found: dict[str, Any] = self._call("PATCH", path, query, value, content_type="application/apply-patch+yaml")
        return found

    def patch(self, kind: Kind, name: str, value: Mapping[str, Any], namespace: str | None = None) -> dict[str, Any]:
        """Merge `value` into an object."""
        path = kind.path(namespace or self.namespace, name)
        found: dict[str, Any] = self._call("PATCH", path, None, value, content_type="application/merge-patch+json")
        return found

    def delete(
        self,
        kind: Kind,
        name: str,
        namespace: str | None = None,
        *,
        propagation: str = "Background",
        grace_s: int | None = None,
    ) -> None:
        """Remove an object and, in the background, what it owns; no error where there is none."""
        body: dict[str, Any] = {"propagationPolicy": propagation}
        if grace_s is not None:
            body["gracePeriodSeconds"] = grace_s
        self._call("DELETE", kind.path(namespace or self.namespace, name), None, body, missing={})

    def may(
        self, verb: str, kind: Kind, part: str = "", namespace: str | None = None, *, account: str | None = None
    ) -> bool:
        """Whether this account may do it, which everybody may ask; or another's (``system:serviceaccount:NS:NAME``)."""
        what = {"verb": verb, "group": kind.group, "resource": kind.plural, "subresource": part}
        if kind.namespaced:
            what["namespace"] = namespace or self.namespace
        review = kinds.OWN_ACCESS_REVIEW if account is None else kinds.ACCESS_REVIEW
        body = {
            "apiVersion": review.api,
            "kind": review.name,
            "spec": {"resourceAttributes": what, **({"user": account} if account else {})},
        }
        answer = self._call("POST", review.path(""), None, body)
        return bool(answer.get("status", {}).get("allowed"))

    def serves(self, kind: Kind) -> bool:
        """Whether the API server has this kind in this version."""
        return self.kind(kind.api, kind.name) is not None

    def kind(self, api: str, name: str) -> Kind | None:
        """As the API server has it; None where it has none of this name in this version."""
        path = f"/apis/{api}" if "/" in api else f"/api/{api}"
        for each in self._call("GET", path, missing={}).get("resources", ()):
            if each["kind"] == name and "/" not in each["name"]:
                return Kind(api, name, each["name"], namespaced=each["namespaced"])
        return None

    def watch(
        self, kind: Kind, version: str, namespace: str | None = None, *, labels: str = "", fields: str = ""
    ) -> Watch:
        """Changes of the objects after `version`, as they come. Raises Expired where it is too old."""
        query = {
            "watch": "1",
            "resourceVersion": version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": "300",
            **_selecting(labels, fields),
        }
        return Watch(self._stream(kind.path(namespace or self.namespace), query, silent_s=330.0))

    def follow_log(self, pod: str, container: str, query: Mapping[str, str], namespace: str | None = None) -> Stream:
        """A container's output as it comes; `query` is the log's own, such as ``sinceTime``."""
        path = f"/api/v1/namespaces/{namespace or self.namespace}/pods/{pod}/log"
        return self._stream(path, {"container": container, "follow": "true", **query}, silent_s=None)

    def _stream(self, path: str, query: Mapping[str, str], *, silent_s: float | None) -> Stream:
        self.requests += 1
        stream = self.session.stream(path, query, silent_s=silent_s)
        if stream.status != 200:
            raise refusal(Answer(stream.status, stream.read_all()))
        return stream

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str] | None = None,
        body: Any = None,
        *,
        content_type: str = "application/json",
        missing: Any = ...,
    ) -> Any:
        end = time.monotonic() + self._patience_s
        pause_s = 0.25
        while True:
            try:
                self.requests += 1
                answer = self.session.request(method, path, query, body, content_type=content_type)
                if answer.status < 300:
                    return answer.json()
                if answer.status == 404 and missing is not ...:
                    return missing
                error: EngineError = refusal(answer)
                again = answer.status in _PASSING
                if method == "POST" and answer.status not in (429, 503):
                    again = _WEBHOOK in str(error)  # nothing was made
            except Unreachable as unreachable:
                error, again = unreachable, method in ("GET", "DELETE", "PATCH") or _refused(unreachable)
            if not again or time.monotonic() + pause_s > end:
                raise error
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, 4.0)


class Watch:
    """Iterates over ``{"type": "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK", "object": {...}}``."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Until the server ends the watch. Raises Expired, Unreachable."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        rest = ""
        for piece in self._stream.pieces():
            *lines, rest = (rest + decoder.decode(piece)).split("\n")
            for line in filter(None, lines):
                event: dict[str, Any] = json.loads(line)
                if event["type"] == "ERROR":
                    status = event["object"]
                    if status.get("code") == 410:
                        raise Expired(status.get("message", "the watch has expired"))
                    raise KubernetesError(status.get("message", ""), status=int(status.get("code", 500)))
                yield event

    def close(self) -> None:
        """From any thread."""
        self._stream.close()


def refusal(answer: Answer) -> KubernetesError:
    """Why a call was refused, in one sentence; a missing right by its name."""
    value = answer.json()
    message = " ".join(str(value.get("message") or answer.body.decode(errors="replace")).split())[:1500]
    reason = str(value.get("reason", ""))
    if answer.status == 403 and (found := _FORBIDDEN.search(message)):
        group = f'apiGroups: ["{found["group"]}"], resources: ["{found["resource"]}"], verbs: ["{found["verb"]}"]'
        where = f" in the namespace {found['namespace']}" if found["namespace"] else ""
        return KubernetesError(
            f"{found['user']} may not {found['verb']} {found['resource']}{where}",
            status=403,
            reason=reason,
            hint=f"a role with {{{group}}} is missing; `yurt kubernetes prepare` makes one",
            missing_right=True,
        )
    if answer.status == 401:
        hint = "are the credentials of the kubeconfig's context still good?"
        return KubernetesError(
            f"the API server does not know who this is: {message}", status=401, reason=reason, hint=hint
        )
    mend = "`yurt kubernetes prepare` makes it" if answer.status == 404 and message.startswith("namespaces ") else None
    message = message or f"the API server answered {answer.status}"
    return KubernetesError(message, status=answer.status, reason=reason, hint=mend)


def _refused(error: Unreachable) -> bool:
    """The connection was never made, so nothing was sent."""
    return any(word in str(error) for word in ("refused", "No route", "Name or service", "name resolution"))


def _selecting(labels: str, fields: str) -> dict[str, str]:
    query = {"labelSelector": labels, "fieldSelector": fields}
    return {name: value for name, value in query.items() if value}
