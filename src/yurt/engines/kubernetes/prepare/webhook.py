"""Whether the API server reaches the operator's webhook, without which no TFJob can be made: it is asked one thing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from yurt.engines.finding import Finding, good, problem, unknown, warning
from yurt.engines.kubernetes import kinds
from yurt.engines.kubernetes.client import Client, KubernetesError
from yurt.engines.kubernetes.prepare.reading import Reading

CHECK: Final = "webhook"
#: Where the training operator 1.9.3 listens, by its documentation and its Service.
DEFAULT_PORT: Final = 9443
#: What the webhook refuses, and nothing before it: its one container is not called tensorflow. Never stored.
_WRONG: Final = {
    "apiVersion": kinds.TFJOB.api,
    "kind": kinds.TFJOB.name,
    "metadata": {"name": "yurt-asks-the-webhook"},
    "spec": {
        "tfReplicaSpecs": {
            "Worker": {"replicas": 1, "template": {"spec": {"containers": [{"name": "wrong", "image": "none"}]}}}
        }
    },
}
_WHY: Final = "no TFJob can be made while the API server cannot ask the operator's webhook"


class Reach(Enum):
    """What became of the question."""

    ANSWERS = "answers"
    NOT_ASKED = "not asked"  # there is no webhook for TFJobs
    NOT_THERE = "not there"  # its pod does not serve yet, or not any more
    CUT_OFF = "cut off"  # nobody answers: as behind a firewall
    NOT_TRUSTED = "not trusted"  # its certificate is not the one that the API server was given
    MAY_NOT = "may not"  # this account may make no TFJobs


@dataclass(frozen=True, slots=True)
class Asked:
    """How it went, with the API server's own words."""

    reach: Reach
    words: str = ""


@dataclass(frozen=True, slots=True)
class Served:
    """Where the webhook is: its service, and the port of the pods that a firewall must let through."""

    namespace: str
    service: str
    port: int
    selector: Mapping[str, str]


def ask(client: Client, namespace: str | None = None) -> Asked:
    """Have a wrong TFJob made for show. Raises Unreachable where the API server is not there."""
    try:
        client.create(_WRONG, namespace, dry_run=True)
    except KubernetesError as error:
        words = str(error)
        if "denied the request" in words:
            return Asked(Reach.ANSWERS)
        if "failed calling webhook" in words:
            return Asked(trouble(words), words)
        if error.status == 403:
            return Asked(Reach.MAY_NOT, words)
        raise
    return Asked(Reach.NOT_ASKED)


def ask_twice(client: Client, namespace: str | None = None) -> Asked:
    """Again where nobody answers: the first may have gone by a connection that was there before the firewall."""
    asked = ask(client, namespace)
    return ask(client, namespace) if asked.reach is Reach.CUT_OFF else asked


def trouble(words: str) -> Reach:
    """Why the API server could not ask a webhook, by its own words about it (Kubernetes 1.36)."""
    words = words.rpartition('": ')[2]  # behind the address that was called, which has a timeout in it
    if any(each in words for each in ("deadline exceeded", "i/o timeout", "timed out", "no route to host")):
        return Reach.CUT_OFF
    if "x509" in words or "tls:" in words:
        return Reach.NOT_TRUSTED
    return Reach.NOT_THERE  # connection refused, no endpoints available, service not found


def served_at(client: Client) -> Served | None:
    """By the configuration that sends TFJobs to it; None where there is none. Raises KubernetesError."""
    for each in client.list(kinds.VALIDATING_WEBHOOK)["items"]:
        for hook in each.get("webhooks", ()):
            rules = hook.get("rules", ())
            if any(kinds.TFJOB.plural in rule.get("resources", ()) for rule in rules) and "service" in (
                config := hook["clientConfig"]
            ):
                return _served(client, config["service"])
    return None


def _served(client: Client, at: Mapping[str, Any]) -> Served:
    service = client.get(kinds.SERVICE, at["name"], at["namespace"]) or {"spec": {}}
    port, selector = at.get("port", 443), service["spec"].get("selector") or {}
    target = next((each.get("targetPort") for each in service["spec"].get("ports", ()) if each["port"] == port), None)
    if isinstance(target, str):  # a port of the pods, by its name
        target = _port_called(client, at["namespace"], selector, target)
    return Served(at["namespace"], at["name"], target or DEFAULT_PORT, selector)


def _port_called(client: Client, namespace: str, selector: Mapping[str, str], name: str) -> int | None:
    labels = ",".join(f"{key}={value}" for key, value in selector.items())
    for pod in client.list(kinds.POD, namespace, labels=labels)["items"]:
        for container in pod["spec"]["containers"]:
            for each in container.get("ports", ()):
                if each.get("name") == name:
                    return int(each["containerPort"])
    return None


def finding(reading: Reading, asked: Asked, served: Served | None) -> Finding:
    """In words, with the rule of the firewall that is missing where it looks like one."""
    port = served.port if served else DEFAULT_PORT
    service = f"{served.service}.{served.namespace}" if served else "the operator's service"
    if asked.reach is Reach.ANSWERS:
        return good(CHECK, f"the API server reaches the operator's webhook ({service}, port {port} of its pod)")
    if asked.reach is Reach.MAY_NOT:
        return unknown(CHECK, "the webhook cannot be asked: this account may make no TFJobs here")
    if asked.reach is Reach.NOT_ASKED:
        what = "no webhook looks at TFJobs: the operator is older than 1.9, or is just being installed"
        return warning(
            CHECK, what, "mistakes in a TFJob are found only by its hanging", reading.command("--operator", "1.9.3")
        )
    if asked.reach is Reach.CUT_OFF:
        what = f"the API server does not get through to the operator's webhook ({service}, port {port} of its pod)"
        why = (
            f"{_WHY}; in a private cluster a firewall lets the control plane reach the nodes on a few ports only "
            f"(443 and the kubelet's 10250), and {port} must be one of them; nodes need 443 or 6443 the other way"
        )
        return problem(CHECK, what, why, reading.cloud.webhook_rule(port))
    where = served.namespace if served else "kubeflow"
    if asked.reach is Reach.NOT_TRUSTED:
        what = "the API server does not trust the certificate of the operator's webhook"
        mend = f"kubectl rollout restart deployment --namespace {where}   # it makes its certificate at its start"
        return problem(CHECK, what, _WHY, mend)
    mend = (
        f"kubectl get pods --namespace {where}   # and kubectl logs of the one that is not ready; if all are:\n"
        f"{reading.cloud.webhook_rule(port)}"
    )
    return problem(CHECK, f"the operator's webhook does not serve: {asked.words}", _WHY, mend)
