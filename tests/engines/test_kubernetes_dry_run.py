"""All that is rendered, looked at by a real API server and the operator's webhook, which are asked to make nothing."""

from __future__ import annotations

import base64
import dataclasses

import pytest

from tests.engines.test_kubernetes_checks import RESTRICTED, WRONG
from tests.engines.test_kubernetes_render import GROUND, PLACE, POD, RUN, RUN_OPTIONS
from yurt.contract.spec import TaskSpec
from yurt.engines.kubernetes.client import Client, KubernetesError
from yurt.engines.kubernetes.options import KubernetesOptions
from yurt.engines.kubernetes.render import owned, render, with_payload
from yurt.engines.kubernetes.session import open_session
from yurt.engines.kubernetes.trial import pods

#: What the cluster of the tests has not: Volcano, and the classes and accounts that pods name.
ELSEWHERE = ("scheduling", "priority_class", "runtime_class", "service_account", "keeper_account", "namespace")
ALL = {key: value for key, value in {**POD, **RUN_OPTIONS}.items() if key not in ELSEWHERE} | {
    "restricted": False,
    "requests": {"cpu": 0.5, "memory": "512Mi"},
    "limits": {"cpu": 1.5, "memory": "3Gi", "example.com/tpu": 2},
}


@pytest.fixture
def client(training_operator, kubernetes_namespace, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(training_operator.kubeconfig))
    return Client(open_session(namespace=kubernetes_namespace))


def rendered(options, run=RUN):
    request = render(run, PLACE, KubernetesOptions.model_validate(options), GROUND)
    owner, *others = with_payload(request["objects"], base64.b64encode(b"x" * 2_000_000).decode())
    return [owner, *owned(others, "11111111-2222-3333-4444-555555555555")]


@pytest.mark.parametrize("way", ["none", "tfjob"])
@pytest.mark.parametrize("options", [{}, ALL, {"restricted": True}], ids=["plain", "all", "restricted"])
def test_the_cluster_takes_what_is_rendered(client, way, options):
    run = dataclasses.replace(RUN, deadline_s=60.0, tasks=(*RUN.tasks, TaskSpec("evaluator", 0, ("a",))))
    objects = rendered({**options, "operator": way}, run)
    for each in objects:
        made = client.create(each, dry_run=True)
        assert made["metadata"]["name"] == each["metadata"]["name"]
    for pod in pods(objects):
        client.create(pod, dry_run=True)


@pytest.mark.parametrize("way", ["none", "tfjob"])
def test_restricted_pods_are_let_into_a_namespace_that_asks_for_them(training_operator, client, way):
    training_operator.kubectl(
        "label", "namespace", client.namespace, "pod-security.kubernetes.io/enforce=restricted"
    )  # fmt: skip
    beside = {name: POD[name] for name in ("init_containers", "sidecars", "volumes", "volume_mounts")}
    for pod in pods(rendered({"operator": way, "restricted": True, **beside})):
        client.create(pod, dry_run=True)
    plain = pods(rendered({"operator": way}))
    assert len(plain) == 4
    for pod in plain:
        with pytest.raises(KubernetesError, match="violates PodSecurity"):
            client.create(pod, dry_run=True)


#: Said otherwise, or Yurt's to say: a pod of it would be taken.
OURS = {"a sidecar's", "an option's", "Yurt's", "limits in the container", "variable in both"}
#: What the API server takes though it cannot work, or not as it is meant.
TAKEN = {
    "a sidecar that ends",  # an init container then, which the task waits for
    "variable twice",  # the last wins
    "place twice",
    "Yurt's port",
    "port without a name",  # the operator's service is refused, and the TFJob gets no status
    "not an image",  # InvalidImageName, for ever
    "thousandths of a byte",
    "host network",  # peers are not found by their names
}  # fmt: skip
#: Not of a pod.
ELSEWHERE_CHECKED = {"scheduling", "namespace", "managed_by"}


def test_the_cluster_refuses_what_is_refused_here(client):
    """Each of the mistakes in a pod, in the pods that would be made of it."""
    taken = {
        name
        for name, (options, _) in WRONG.items()
        if not ELSEWHERE_CHECKED & options.keys() and name != "keeper's account twice" and not refused(client, options)
    }
    assert taken == OURS | TAKEN


def refused(client, options):
    """The first refusal of a pod; empty where all are taken, ``broken`` where none can even be made."""
    try:
        for pod in pods(rendered(options)):
            client.create(pod, dry_run=True)
    except KubernetesError as error:
        return str(error)
    except (TypeError, AttributeError):
        return "broken"
    return ""


def test_the_standard_refuses_what_is_refused_here(training_operator, client):
    training_operator.kubectl(
        "label", "namespace", client.namespace, "pod-security.kubernetes.io/enforce=restricted"
    )  # fmt: skip
    found = {name: refused(client, {**options, "restricted": True}) for name, (options, _) in RESTRICTED.items()}
    # What contradicts itself is refused for that.
    assert [name for name, text in found.items() if "violates PodSecurity" not in text] == ["privileged", "sidecar"]
    assert "cannot set `allowPrivilegeEscalation` to false and `privileged` to true" in found["privileged"]


def test_it_knows_of_a_quota_before_a_run_is_sent(training_operator, client):
    training_operator.kubectl(
        "create", "quota", "small", "--hard=pods=1,limits.memory=100Mi", "-n", client.namespace
    )  # fmt: skip
    assert "exceeded quota: small" in refused(client, {"limits": {"memory": "1Gi"}})
