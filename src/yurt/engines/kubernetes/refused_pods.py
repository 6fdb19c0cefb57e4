"""Why no pod is made for a task: from the conditions and events of its Job or TFJob. Kubernetes 1.36."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Final

from yurt.engines.kubernetes.diagnosis import Around, Diagnosis, Value, short
from yurt.engines.kubernetes.labels import COMPONENT, KUEUE_QUEUE
from yurt.engines.kubernetes.quantities import quantity

_FAILED_TO_MAKE: Final = ("FailedCreate", "FailedCreatePod", "FailedCreateService")
_MADE: Final = ("SuccessfulCreate", "SuccessfulCreatePod")
_QUOTA: Final = re.compile(r"exceeded quota: (\S+), requested: (\S+), used: (\S+), limited: (\S+)")
_WEBHOOK: Final = re.compile(r'failed calling webhook "([^"]+)": (.*)')
_ACCOUNT: Final = re.compile(r'serviceaccount "([^"]+)" not found')
_CLASS: Final = re.compile(r'no PriorityClass with name (\S+) was found|RuntimeClass "([^"]+)" not found')
_OVER: Final = {
    "BackoffLimitExceeded": "its pods have failed as often as its Job allows",
    "DeadlineExceeded": "its Job was active longer than its deadline",
    "FailedIndexes": "one of its Job's pods has failed for good",
    "MaxFailedIndexesExceeded": "too many of its Job's pods have failed",
    "PodFailurePolicy": "its Job's pod failure policy has ended it",
}


def without_pod(task: str, around: Around) -> Diagnosis | None:
    """For a task that has no pod; None where nothing speaks against one."""
    role = task.partition("/")[0]
    jobs = [each for each in around.jobs if _component(each) == role]
    for owner in jobs:
        if (found := over(owner)) is not None:
            return found
    ended = [found for owner in around.tfjobs if (found := over(owner)) is not None]
    if ended and len(ended) == len(around.tfjobs):
        return replace(ended[-1], hopeless=False)  # it is submitted again
    for owner in (*jobs, *around.tfjobs):
        if (found := _held_back(owner)) is not None:
            return found
        event = around.last_event(owner["metadata"]["name"], *_FAILED_TO_MAKE, *_MADE)
        if event is not None and event["reason"] not in _MADE:
            return refused(event["message"])
    return None


def over(owner: Value) -> Diagnosis | None:
    """A Job or TFJob that has failed makes no pod any more."""
    for each in (owner.get("status") or {}).get("conditions") or ():
        if each["type"] == "Failed" and each["status"] == "True":
            name = f"{owner['kind']} {owner['metadata']['name']}" if "kind" in owner else owner["metadata"]["name"]
            words = _OVER.get(str(each.get("reason"))) or f"{name} has failed: {short(each.get('message'))}"
            return Diagnosis(words, hopeless=True)
    return None


def refused(message: Any) -> Diagnosis:
    """Why the API server did not take a pod, from the message of an event or of a refusal."""
    text = short(message).removeprefix("Error creating: ")
    if (found := _QUOTA.search(text)) is not None:
        name, wanted, used, limited = found.groups()
        return Diagnosis(
            f"the namespace's quota {name} is used up: it asks for {wanted.rstrip(',')}, used {used.rstrip(',')}"
            f" of {limited.rstrip(',')}",
            hopeless=_beyond(wanted, limited),
        )
    if (found := re.search(r"failed quota: (\S+): must specify (.*)", text)) is not None:
        return Diagnosis(
            f"the namespace's quota {found[1]} wants {_of_containers(found[2])} to be said: see `cpus` and `memory` of"
            " a role, and `requests` and `limits` under `engines: kubernetes:`",
            hopeless=True,
        )
    if "violates PodSecurity" in text:
        return _insecure(text)
    if (found := _ACCOUNT.search(text)) is not None:
        return Diagnosis(f"its service account {found[1]} does not exist: make it, or name another `service_account`")
    if (found := _CLASS.search(text)) is not None:
        what, name = ("priority class", found[1]) if found[1] else ("runtime class", found[2])
        return Diagnosis(f"its {what} {name} does not exist: make it, or name another")
    if (found := _WEBHOOK.search(text)) is not None:
        return Diagnosis(f"the cluster's webhook {found[1]}, which is asked about each pod, fails: {found[2]}")
    if (found := re.search(r'admission webhook "([^"]+)" denied the request: (.*)', text)) is not None:
        return Diagnosis(f"the cluster's webhook {found[1]} refuses it: {found[2]}", hopeless=True)
    reason = re.sub(r'^pods "[^"]*" is forbidden: ', "", text)
    if re.search(r"(?:maximum|minimum) \S+ usage per|cpu max limit to request ratio", reason):
        return Diagnosis(f"the namespace's limit range refuses it: {reason}", hopeless=True)
    return Diagnosis(f"its pod is refused: {reason}", hopeless=" is invalid: " in text)


def _component(owner: Value) -> str:
    return str((owner["metadata"].get("labels") or {}).get(COMPONENT, ""))


def _held_back(owner: Value) -> Diagnosis | None:
    spec = owner.get("spec") or {}
    if not spec.get("suspend") and not (spec.get("runPolicy") or {}).get("suspend"):
        return None
    queue = (owner["metadata"].get("labels") or {}).get(KUEUE_QUEUE)
    if queue:
        return Diagnosis(f"it waits in Kueue's queue {queue} until the run is admitted")
    return Diagnosis("it is suspended: it was submitted, and not to be started yet")


def _beyond(wanted: str, limited: str) -> bool:
    """One pod alone asks for more than the whole quota."""
    most = dict(part.split("=", 1) for part in limited.split(",") if "=" in part)
    try:
        return any(
            quantity(amount) > quantity(most[name])
            for name, amount in (part.split("=", 1) for part in wanted.split(",") if "=" in part)
            if name in most
        )
    except ValueError:
        return False


def _of_containers(text: str) -> str:
    """``limits.memory and requests.cpu`` of ``limits.memory for: tensorflow; requests.cpu for: tensorflow``."""
    return " and ".join(part.partition(" for:")[0].strip() for part in text.split(";"))


def _insecure(text: str) -> Diagnosis:
    level = re.search(r'violates PodSecurity "([^":]+)', text)
    broken = re.findall(r"(?:^|: |, )([\w ]+?(?: != \w+)?) \((?:pod|container)", text.partition("PodSecurity")[2])
    what = f" ({', '.join(broken)})" if broken else ""
    name = level[1] if level else "restricted"
    return Diagnosis(
        f"the namespace takes only pods of the {name} security standard{what}:"
        " say `engines: kubernetes: restricted: true`",
        hopeless=True,
    )
