"""Puts the training operator on a cluster by its own manifests, and waits until it serves."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

from yurt.engines.kubernetes import kinds
from yurt.engines.kubernetes.client import Client, KubernetesError
from yurt.engines.kubernetes.kinds import Kind
from yurt.engines.kubernetes.prepare import webhook
from yurt.engines.kubernetes.prepare.manifests import Source
from yurt.engines.kubernetes.prepare.operator_state import RELEASE_NOTE, ready_pods, serving
from yurt.errors import EngineError

_PAUSE_S: Final = 0.5
#: Seconds until a kind that has just been defined is served.
_DEFINED_S: Final = 30.0

Value = Mapping[str, Any]


def adapted(objects: Sequence[Value], source: Source, image: str | None) -> list[Value]:
    """The manifests as they are sent: the operator's deployment says its release, and has the image that is wanted."""
    found = [copy.deepcopy(dict(each)) for each in objects]
    for each in found:
        if each["kind"] != "Deployment":
            continue
        if source.release:
            each["metadata"].setdefault("annotations", {})[RELEASE_NOTE] = source.release
        if image:
            for container in each["spec"]["template"]["spec"]["containers"]:
                container["image"] = image
    return list(found)


def apply(client: Client, objects: Iterable[Value]) -> int:
    """Make each what it says, server-side; how many there were. Raises EngineError."""
    known: dict[tuple[str, str], Kind] = {}
    count = 0
    for each in objects:
        key = (each["apiVersion"], each["kind"])
        if key not in known:
            known[key] = _kind(client, *key)
        client.apply(each, kind=known[key])
        count += 1
    return count


def _kind(client: Client, api: str, name: str) -> Kind:
    """As the API server has it, which may take a moment after its definition."""
    end = time.monotonic() + _DEFINED_S
    while (found := client.kind(api, name)) is None:
        if time.monotonic() > end:
            raise EngineError(f"the API server knows no {name} in {api}, which the manifests have")
        time.sleep(_PAUSE_S)
    return found


def wait_until_it_serves(client: Client, within_s: float, say: Callable[[str], None]) -> webhook.Asked:
    """Until its deployment is ready and its webhook answers, or the time is over; the last answer of the webhook."""
    end = time.monotonic() + within_s
    told = ""
    while True:
        state, asked = _state(client)
        if asked.reach is webhook.Reach.ANSWERS or (time.monotonic() > end):
            return asked
        if state != told:
            say(f"waiting: {state}")
            told = state
        time.sleep(_PAUSE_S)


def _state(client: Client) -> tuple[str, webhook.Asked]:
    if not client.serves(kinds.TFJOB):
        return "TFJobs are not served yet", webhook.Asked(webhook.Reach.NOT_ASKED)
    try:
        served = webhook.served_at(client)
        deployment = serving(client, served) if served else None
        ready = bool(deployment and ready_pods(deployment))
    except KubernetesError as error:
        if error.status != 403:
            raise
        ready = True  # it cannot be seen: its webhook tells
    if not ready:
        pods = f": {_trouble(client, served.namespace, served.selector)}" if served else ""
        return f"the operator's pod is not ready{pods}", webhook.Asked(webhook.Reach.NOT_THERE, "no pod is ready")
    asked = webhook.ask(client, "default")
    return "the operator's webhook does not answer yet", asked


def _trouble(client: Client, namespace: str, selector: Mapping[str, str]) -> str:
    """Why its newest pod does not run, in Kubernetes' words."""
    labels = ",".join(f"{key}={value}" for key, value in selector.items())
    pods = client.list(kinds.POD, namespace, labels=labels)["items"]
    if not pods:
        return "no pod is made yet"
    status = max(pods, key=lambda each: each["metadata"]["creationTimestamp"])["status"]
    for each in status.get("containerStatuses", ()):
        if waiting := each.get("state", {}).get("waiting"):
            return " ".join(f"{waiting.get('reason', '')} {waiting.get('message', '')}".split())[:300]
    for each in status.get("conditions", ()):
        if each["type"] == "PodScheduled" and each["status"] == "False":
            return str(each.get("message", ""))
    return "it has begun" if status.get("phase") == "Running" else "it is being started"
