"""Proves the ground: two pods find each other by name, exchange a line and are reached from here; a claim is bound."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Iterator, Mapping
from typing import Any, Final

from yurt.engines.finding import Finding, good, problem, unknown, warning
from yurt.engines.kubernetes import kinds
from yurt.engines.kubernetes.client import KubernetesError
from yurt.engines.kubernetes.prepare import proof_objects
from yurt.engines.kubernetes.prepare.proof_objects import PORT, Proof
from yurt.engines.kubernetes.prepare.reading import Reading
from yurt.engines.kubernetes.prepare.storage import is_default
from yurt.errors import EngineError

CHECK: Final = "proof"
IMAGE: Final = "python:3.11-slim"
#: What the agent needs in a task's image.
OLDEST_PYTHON: Final = (3, 11)
_PAUSE_S: Final = 0.5
_ALPHABET: Final = "abcdefghijkmnpqrstuvwxyz23456789"
#: What a container waits for that will not come by itself.
_HOPELESS: Final = ("ErrImageNeverPull", "InvalidImageName", "CreateContainerConfigError", "ImagePullBackOff")


def proof_for(reading: Reading, image: str, within_s: int, pull_secrets: tuple[str, ...] = ()) -> Proof:
    """With a name of its own."""
    name = "yurt-proof-" + "".join(secrets.choice(_ALPHABET) for _ in range(5))
    pool = (reading.pool,) if reading.pool else ()
    return Proof(name, reading.namespace, image, within_s, pool, pull_secrets)


def prove(reading: Reading, proof: Proof) -> Iterator[Finding]:
    """Make the pods, look at what becomes of them, and remove everything, also on Ctrl-C."""
    client = reading.client
    made = client.create(proof_objects.job(proof), proof.namespace)
    try:
        uid = made["metadata"]["uid"]
        client.create(proof_objects.owned(proof_objects.service(proof), uid, proof), proof.namespace)
        claims = _claim(reading, proof, uid)
        yield from _pods(reading, proof)
        if claims:
            yield _claimed(reading, proof)
    finally:
        client.delete(kinds.JOB, proof.name, proof.namespace)


def _claim(reading: Reading, proof: Proof, uid: str) -> bool:
    """Make the claim and its pod, where there is a default class and this account may; whether it did."""
    client = reading.client
    try:
        if not any(is_default(each) for each in client.list(kinds.STORAGE_CLASS)["items"]):
            return False
        client.create(proof_objects.owned(proof_objects.claim(proof), uid, proof), proof.namespace)
    except KubernetesError as error:
        if error.status != 403:
            raise
        return False
    client.create(proof_objects.owned(proof_objects.claiming_job(proof), uid, proof), proof.namespace)
    return True


def _pods(reading: Reading, proof: Proof) -> Iterator[Finding]:
    end = time.monotonic() + proof.within_s
    forwarded: str | None = "the first pod never ran"
    while True:
        pods = _own(reading, proof.name)
        if forwarded is not None and (first := _running(pods)):
            forwarded = _talk(reading, proof, first)
        ended = [pod for pod in pods if pod["status"].get("phase") in ("Succeeded", "Failed")]
        if len(ended) == 2 or (trouble := _hopeless(pods)) or time.monotonic() > end:
            break
        time.sleep(_PAUSE_S)
    if len(ended) < 2:
        trouble = _hopeless(pods) or _waits_for(reading, proof, pods)
        what = f"the pods of the proof do not run: {trouble}"
        yield problem(CHECK, what, "a run's pods would wait in the same way", _mend(trouble, proof))
        return
    results = [_result(pod) for pod in ended]
    yield from _judged(proof, results)
    if all(result and "peer" not in result for result in results):
        yield _forwarding(forwarded)
        yield _logs(reading, proof, ended[0])


def _judged(proof: Proof, results: list[dict[str, Any]]) -> Iterator[Finding]:
    """What the pods say."""
    for result in results:
        if "words" in result:
            why = "a task's agent needs Python 3.11 in the job's image"
            yield problem(CHECK, f"a pod of the proof failed: {result['words']}", why, "--image IMAGE   # one with it")
            return
    lost = [result["peer"] for result in results if "peer" in result]
    if lost:
        what = f"a pod does not reach the other: {lost[0]}"
        why = "tasks find each other by such names, and speak to each other at any of their ports"
        mend = (
            f"kubectl get networkpolicies --namespace {proof.namespace}\n"
            "kubectl get pods --namespace kube-system --selector k8s-app=kube-dns"
        )
        yield problem(CHECK, what, why, mend)
    else:
        nodes = sorted({result["node"] for result in results})
        slowest = max(result.get("name_after_s", 0.0) for result in results)
        where = f"on {nodes[0]} and {nodes[1]}" if len(nodes) == 2 else f"both on {nodes[0]}"
        yield good(CHECK, f"two pods {where} found each other by name after {slowest} s and exchanged a line")
        python = results[0]["python"]
        if tuple(int(part) for part in python.split(".")[:2]) < OLDEST_PYTHON:
            what = f"the image {proof.image} has Python {python}"
            wanted = ".".join(map(str, OLDEST_PYTHON))
            why = f"a task's agent needs Python {wanted} or later in the job's image"
            yield warning(CHECK, what, why, f"image: IMAGE   # in the job file: one with Python {wanted}")
        if len(nodes) == 1:
            yield unknown(CHECK, "whether pods of different nodes reach each other was not seen: both were put on one")
    deaf = [result["api"] for result in results if "api" in result]
    if deaf:
        what = f"a pod does not reach the API server at {deaf[0]}"
        why = "the operator and the keeper of a TFJob must"
        yield warning(CHECK, what, why, "allow TCP 443 and 6443 from the nodes and pods to the control plane")


def _forwarding(trouble: str | None) -> Finding:
    if trouble is None:
        return good(CHECK, "a port of a pod is reached from here, through the API server")
    what = f"no port of a pod is reached from here: {trouble}"
    why = "how far a run is, is read through a forwarded port; without it runs go on, and are heard of at their end"
    return warning(
        CHECK, what, why, "allow WebSockets to the API server in the proxy between, and see the finding `rights`"
    )


def _logs(reading: Reading, proof: Proof, pod: Mapping[str, Any]) -> Finding:
    try:
        stream = reading.client.follow_log(pod["metadata"]["name"], "proof", {}, proof.namespace)
        text = b"".join(stream.pieces())
    except EngineError as error:
        why = "what tasks print comes this way"
        mend = "allow TCP 10250 from the control plane to the nodes"
        return warning(CHECK, f"the log of a pod cannot be read: {error}", why, mend)
    if b'"index"' in text:
        return good(CHECK, "the log of a pod is read from here")
    return warning(CHECK, f"the log of a pod came empty ({len(text)} bytes)", "what tasks print comes this way")


def _claimed(reading: Reading, proof: Proof) -> Finding:
    """Whether the claim's pod has written to it."""
    end = time.monotonic() + proof.within_s
    while True:
        pods = _own(reading, f"{proof.name}-claim")
        phase = pods[0]["status"].get("phase") if pods else "Pending"
        if phase == "Succeeded":
            return good(CHECK, "a claim that names no class was bound, and a pod has written to it")
        if phase == "Failed" or _hopeless(pods) or time.monotonic() > end:
            break
        time.sleep(_PAUSE_S)
    claim = reading.client.get(kinds.CLAIM, proof.name, proof.namespace) or {}
    state = claim.get("status", {}).get("phase", "gone")
    trouble = _hopeless(pods) or (_ended_with(pods[0]) if phase == "Failed" else _waits_for(reading, proof, pods))
    what = f"a pod could not write to a claim that names no class: the claim is {state}; {trouble}"
    return warning(
        CHECK, what, "runs with such a claim would wait", "kubectl get events --all-namespaces   # of the provisioner"
    )


def _own(reading: Reading, name: str) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = reading.client.list(kinds.POD, labels=f"{proof_objects.LABEL}={name}")["items"]
    return found


def _running(pods: list[Mapping[str, Any]]) -> str | None:
    """The name of the first pod, once it runs."""
    for pod in pods:
        index = pod["metadata"]["labels"].get("batch.kubernetes.io/job-completion-index")
        if index == "0" and pod["status"].get("phase") == "Running":
            return str(pod["metadata"]["name"])
    return None


def _talk(reading: Reading, proof: Proof, pod: str) -> str | None:
    """Say a line to the pod through a forwarded port: None where it answers, else what is in the way."""
    try:
        connection = reading.client.session.forward(proof.namespace, pod, PORT)
        try:
            connection.sendall(b"yurt-proof doctor\n")
            answer = connection.recv(200)
        finally:
            connection.close()
    except (EngineError, OSError) as error:
        return str(error)
    return None if answer.startswith(b"yurt-proof 0") else "the connection was closed without a word"


def _result(pod: Mapping[str, Any]) -> dict[str, Any]:
    """What the pod has found; ``words`` where it is none of ours."""
    for each in pod["status"].get("containerStatuses", ()):
        ended = each.get("state", {}).get("terminated") or {}
        text = ended.get("message", "")
        try:
            value = json.loads(text)
            if isinstance(value, dict):
                return value
        except ValueError:
            words = " ".join(text.split())
            return {"words": words or f"exit code {ended.get('exitCode')} {ended.get('reason', '')}".strip()}
    return {"words": pod["status"].get("message") or pod["status"].get("reason") or "it ended before it began"}


def _hopeless(pods: list[Mapping[str, Any]]) -> str:
    """What a container waits for in vain, in Kubernetes' words."""
    for pod in pods:
        for each in pod["status"].get("containerStatuses", ()):
            waiting = each.get("state", {}).get("waiting") or {}
            if waiting.get("reason") in _HOPELESS:
                return " ".join(f"{waiting['reason']}: {waiting.get('message', '')}".split())
    return ""


def _ended_with(pod: Mapping[str, Any]) -> str:
    for each in pod["status"].get("containerStatuses") or ():
        if ended := each.get("state", {}).get("terminated"):
            return f"its pod, of user 65534, ended with exit code {ended.get('exitCode')}: may it write there?"
    return str(pod["status"].get("message") or "its pod failed")


def _waits_for(reading: Reading, proof: Proof, pods: list[Mapping[str, Any]]) -> str:
    """What the pods wait for, in Kubernetes' words: of the scheduler, of a kubelet, or why they are not even made."""
    for pod in pods:
        for each in pod["status"].get("conditions", ()):
            if each["type"] == "PodScheduled" and each["status"] == "False":
                return str(each.get("message", "it is not placed"))
    try:
        events = reading.client.list(kinds.EVENT, proof.namespace, fields="type=Warning")["items"]
    except KubernetesError:
        events = []
    own = [each for each in events if each["involvedObject"].get("name", "").startswith(proof.name)]
    if own:
        return str(own[-1].get("message", own[-1].get("reason", "")))
    return "they did not end in time" if pods else "no pod was made"


def _mend(trouble: str, proof: Proof) -> str:
    if "mage" in trouble:
        return (
            "--image IMAGE   # one with python3 that the nodes can pull, and a secret for its registry if it needs one"
        )
    return f"kubectl get events --namespace {proof.namespace}"
