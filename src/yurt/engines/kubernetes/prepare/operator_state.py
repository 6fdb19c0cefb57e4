"""What there is of the training operator: its kind, its deployment, and whether its webhook answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from yurt.engines.finding import Finding, good, problem, unknown, warning
from yurt.engines.kubernetes import kinds
from yurt.engines.kubernetes.client import Client, KubernetesError
from yurt.engines.kubernetes.prepare import webhook
from yurt.engines.kubernetes.prepare.reading import Reading

CHECK: Final = "operator"
#: Which release `yurt kubernetes prepare` has installed; the manifests' own image tag is a commit's.
RELEASE_NOTE: Final = "yurt/operator-release"
_WITHOUT: Final = "runs go without it, as Indexed Jobs; only those that say operator: tfjob need it"


def check(reading: Reading) -> Iterator[Finding]:
    """All of it, or that it is not there."""
    if not reading.operator_served:
        versions = _versions(reading.client)
        what = (
            f"TFJobs are served in {versions} only" if versions else "the Kubeflow training operator is not installed"
        )
        yield warning(CHECK, what, _WITHOUT, reading.command("--operator", "1.9.3"))
        return
    served = None
    try:
        served = webhook.served_at(reading.client)
        deployment = serving(reading.client, served) if served else None
        yield _deployed(deployment) if deployment else _not_deployed(reading, served)
        if deployment and not ready_pods(deployment):
            return  # that its webhook does not answer is no other trouble
    except KubernetesError as error:
        if error.status != 403:
            raise
        yield unknown(
            CHECK, f"TFJobs are served ({kinds.TFJOB.api}); the operator's deployment cannot be seen: {error}"
        )
    yield webhook.finding(reading, webhook.ask_twice(reading.client, "default" if reading.no_space else None), served)


def serving(client: Client, served: webhook.Served) -> Mapping[str, Any] | None:
    """The deployment whose pods the webhook's service chooses."""
    for each in client.list(kinds.DEPLOYMENT, served.namespace)["items"]:
        labels = each["spec"]["template"]["metadata"].get("labels", {})
        if served.selector and served.selector.items() <= labels.items():
            found: Mapping[str, Any] = each
            return found
    return None


def ready_pods(deployment: Mapping[str, Any]) -> int:
    """How many of its pods are ready, of the newest template."""
    status = deployment.get("status", {})
    if status.get("observedGeneration", 0) < deployment["metadata"].get("generation", 0):
        return 0
    return min(int(status.get("readyReplicas", 0)), int(status.get("updatedReplicas", 0)))


def _deployed(deployment: Mapping[str, Any]) -> Finding:
    meta, wanted = deployment["metadata"], deployment["spec"].get("replicas", 1)
    image = deployment["spec"]["template"]["spec"]["containers"][0]["image"]
    release = (meta.get("annotations") or {}).get(RELEASE_NOTE)
    version = f"release {release}, " if release else ""
    name = f"{meta['namespace']}/{meta['name']}"
    if ready_pods(deployment):
        return good(
            CHECK, f"the training operator is ready ({name}, {version}image {image}); TFJobs: {kinds.TFJOB.api}"
        )
    if wanted == 0:
        mend = f"kubectl scale deployment {meta['name']} --namespace {meta['namespace']} --replicas=1"
        return problem(CHECK, f"the training operator {name} is scaled to 0", "TFJobs are not even taken", mend)
    mend = f"kubectl describe pods --namespace {meta['namespace']}"
    return problem(
        CHECK, f"no pod of the training operator {name} is ready ({image})", "TFJobs are not even taken", mend
    )


def _not_deployed(reading: Reading, served: webhook.Served | None) -> Finding:
    where = f"behind {served.service}.{served.namespace}" if served else "that a webhook of TFJobs names"
    what = f"TFJobs are served, but no deployment of the operator is there {where}"
    return warning(CHECK, what, "a TFJob is taken and then nothing happens", reading.command("--operator", "1.9.3"))


def _versions(client: Client) -> str:
    """Of TFJobs that are served, in other versions than ours: the operator's first ones."""
    return ", ".join(
        f"kubeflow.org/{version}"
        for version in ("v1beta2", "v1beta1", "v1alpha2")
        if client.kind(f"kubeflow.org/{version}", "TFJob")
    )
