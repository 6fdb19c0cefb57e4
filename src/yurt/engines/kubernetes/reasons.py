"""Why a task does not start, in plain words: a table over what its pod, its events and its Job say.

Texts are of Kubernetes 1.36 and containerd 1.6, seen. What can still come by itself is "waiting", the rest hopeless.
"""

from __future__ import annotations

import re
from typing import Any, Final

from yurt.engines.kubernetes.diagnosis import Around, Diagnosis, Value, short
from yurt.engines.kubernetes.placing import unplaced
from yurt.engines.kubernetes.refused_pods import without_pod
from yurt.engines.kubernetes.states import CONTAINER, condition, init_fault, start_fault

#: Words of a container that waits for nothing in particular.
_BUSY: Final = ("ContainerCreating", "PodInitializing", "")
_PULLING: Final = ("ErrImagePull", "ImagePullBackOff", "RegistryUnavailable", "ImageInspectError")
_UNREACHABLE: Final = re.compile(r"no such host|i/o timeout|connection refused|no route to host|x509|TLS handshake|EOF")
_DENIED: Final = re.compile(r"40[13]|denied|[uU]nauthorized|authorization failed|authentication required")
_NESTED: Final = re.compile(
    r'(?:Back-off pulling image "[^"]*": )?(?:ErrImagePull: )?(?:rpc error: code = \w+ desc = )?'
    r'(?:failed to pull and unpack image "[^"]*": )?(?:failed to resolve reference "[^"]*": )?'
    r'(?:failed to do request: )?(?:Head "[^"]*": )?(?:dial tcp: )?'
)
_MOUNT: Final = ("FailedMount", "FailedAttachVolume", "FailedMapVolume")
_SANDBOX: Final = ("FailedCreatePodSandBox", "NetworkNotReady")


def why(task: str, pod: Value | None, around: Around) -> Diagnosis | None:
    """Why a task that is pending is so; None where nothing is wrong with it, or nothing is known yet."""
    if pod is None:
        return without_pod(task, around)
    scheduled = condition(pod, "PodScheduled")
    if not (pod.get("spec") or {}).get("nodeName"):
        return _without_node(pod, scheduled, around)
    return _of_containers(pod) or _of_events(pod, around)


def _without_node(pod: Value, scheduled: Value, around: Around) -> Diagnosis | None:
    spec = pod.get("spec") or {}
    if scheduled.get("reason") == "SchedulingGated":
        gates = ", ".join(each["name"] for each in spec.get("schedulingGates") or ())
        if "kueue" in gates:
            return Diagnosis("it waits until Kueue admits the run")
        return Diagnosis(f"it waits until somebody takes away its scheduling gate {gates}")
    if scheduled.get("status") == "False":
        return unplaced(pod, str(scheduled.get("message") or ""), around)
    name = spec.get("schedulerName") or "default-scheduler"
    event = around.last_event(pod["metadata"]["name"], "FailedScheduling", "Unschedulable")
    if event is not None:
        return unplaced(pod, str(event["message"]), around)
    return Diagnosis(f"the scheduler {name} has not looked at it: does it run?")


def _of_containers(pod: Value) -> Diagnosis | None:
    status = pod.get("status") or {}
    for each in status.get("initContainerStatuses") or ():
        found = _of_container(pod, each, f"its init container {each['name']}") or _of_init(pod, each)
        if found is not None:
            return found
    others = [each for each in status.get("containerStatuses") or () if each["name"] != CONTAINER]
    own = [each for each in status.get("containerStatuses") or () if each["name"] == CONTAINER]
    for each in (*own, *others):
        who = "its container" if each["name"] == CONTAINER else f"its sidecar {each['name']}"
        if (found := _of_container(pod, each, who)) is not None:
            return found
    return None


def _of_init(pod: Value, status: Value) -> Diagnosis | None:
    state = status.get("state") or {}
    name = status["name"]
    if (words := init_fault(status)) is not None:
        return Diagnosis(words)
    beside = any(
        each["name"] == name and each.get("restartPolicy") == "Always"
        for each in (pod.get("spec") or {}).get("initContainers") or ()
    )
    if "running" in state and not (beside and status.get("started")):
        return Diagnosis(f"its init container {name} still runs")
    return None


def _of_container(pod: Value, status: Value, who: str) -> Diagnosis | None:
    waiting = (status.get("state") or {}).get("waiting") or {}
    reason, message = str(waiting.get("reason") or ""), short(waiting.get("message"))
    if reason in _BUSY or (reason == "CrashLoopBackOff" and status["name"] == CONTAINER):
        return None  # how the task's own has ended says its allocation
    image = _image(pod, status)
    if reason in _PULLING:
        return _unpulled(pod, image, message)
    if reason == "ErrImageNeverPull":
        return Diagnosis(f"its image {image} is not on the node, and `image_pull_policy` is Never", hopeless=True)
    if reason == "InvalidImageName":
        what = message.rpartition("invalid reference format: ")[2] if "invalid reference format: " in message else ""
        return Diagnosis(f"its image {image} is no name of an image{f': {what}' if what else ''}", hopeless=True)
    if reason == "CreateContainerConfigError":
        return _unconfigured(message, who)
    if reason == "CrashLoopBackOff":
        last = ((status.get("lastState") or {}).get("terminated")) or {}
        return Diagnosis(f"{who} ends again and again, the last time with exit code {last.get('exitCode', '?')}")
    return Diagnosis(f"{who} cannot be started ({reason}): {start_fault(message)}")


def _unpulled(pod: Value, image: str, message: str) -> Diagnosis:
    said = re.sub(r"( on \S+:53)?: read udp \S+", "", _NESTED.sub("", message, count=1)) or message
    if _DENIED.search(said):
        secrets = (pod.get("spec") or {}).get("imagePullSecrets") or ()
        names = ", ".join(each.get("name", "") for each in secrets)
        hint = f"are the credentials in {names} right?" if names else "does it need `image_pull_secrets`?"
        return Diagnosis(f"its image {image} cannot be pulled: its registry refuses ({said}); {hint}")
    if _UNREACHABLE.search(said):
        return Diagnosis(f"its image {image} cannot be pulled: the node does not reach its registry ({said})")
    if "not found" in said or "manifest unknown" in said:
        return Diagnosis(f"its image {image} cannot be pulled: its registry has none of that name ({said})")
    if said.startswith("Back-off pulling image"):
        return Diagnosis(f"its image {image} cannot be pulled; it is tried again")
    return Diagnosis(f"its image {image} cannot be pulled: {said}")


def _unconfigured(message: str, who: str) -> Diagnosis:
    if (found := re.search(r'(configmap|secret) "([^"]+)" not found', message)) is not None:
        kind = "config map" if found[1] == "configmap" else "secret"
        return Diagnosis(f"the {kind} {found[2]} that its variables come from does not exist: it starts once it does")
    if (found := re.search(r"couldn't find key (\S+) in (ConfigMap|Secret) [^/]+/(\S+)", message)) is not None:
        kind = "config map" if found[2] == "ConfigMap" else "secret"
        return Diagnosis(f"the {kind} {found[3]} has no key {found[1]}")
    if "runAsNonRoot" in message:
        return Diagnosis(
            f"{who} must not run as root, and its image does: say `security_context: {{runAsUser: 1000}}`",
            hopeless=True,
        )
    return Diagnosis(f"{who} cannot be made: {message}")


def _of_events(pod: Value, around: Around) -> Diagnosis | None:
    """By the last thing that happened to it."""
    event = around.last_event(pod["metadata"]["name"], *_MOUNT, *_SANDBOX, "Pulling", "Pulled", "Failed")
    if event is None or event["reason"] in ("Pulled", "Failed"):
        return None
    if event["reason"] == "Pulling":
        return Diagnosis("its image is being pulled")
    if event["reason"] in _MOUNT:
        return _unmounted(short(event["message"]))
    return Diagnosis(f"its node cannot make the pod: {short(event['message'])}")


def _unmounted(message: str) -> Diagnosis:
    volume = re.search(r'for volume "([^"]+)"', message)
    said = message.partition(" : ")[2] or message
    name = f" {volume[1]}" if volume else ""
    return Diagnosis(f"its volume{name} cannot be mounted: {said}")


def _image(pod: Value, status: Value) -> str:
    spec: dict[str, Any] = dict(pod.get("spec") or {})
    for each in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        if each["name"] == status["name"]:
            return str(each.get("image"))
    return str(status.get("image"))
