"""The names of a run's objects and hosts, all made of its id, and Kubernetes' rules for them."""

from __future__ import annotations

import re
from typing import Final

#: Kubernetes' limit for what becomes a part of a DNS name: services, pods' host names, values of labels.
LONGEST: Final = 63
#: DNS-1035, which services have to keep to.
_LABEL: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")

#: What the pod that keeps the run's state is called among the roles.
KEEPER: Final = "keeper"
#: The port of a task, by the name that the training operator looks for, and of the store.
PORT_NAME: Final = "tfjob-port"
PORT: Final = 2222
STORE_PORT_NAME: Final = "store"
STORE_PORT: Final = 8555
#: The account by which a keeper acts in the cluster, where it is.
KEEPER_ACCOUNT: Final = "yurt-keeper"
#: The key of a run's order in its secret.
ORDER_KEY: Final = "run.json"


def keeper(run_id: str) -> str:
    """The job of the pod that keeps the run's state; it owns all other objects of the run."""
    return f"{run_id}-keeper"


def order(run_id: str) -> str:
    """The secret with the run's order."""
    return run_id


def service(run_id: str) -> str:
    """The headless service of all of the run's pods."""
    return run_id


def code(run_id: str, piece: int = 0) -> str:
    """The config map with a piece of what travels."""
    return f"{run_id}-code" + (f"-{piece}" if piece else "")


def job(run_id: str, role: str) -> str:
    """The job of a role."""
    return f"{run_id}-{role}"


def tfjob(run_id: str, submission: int = 0) -> str:
    """The TFJob; one that was submitted again has a name of its own, since pods of the last may still be there."""
    return run_id + (f"-{submission}" if submission else "")


def pod_group(run_id: str) -> str:
    """Volcano's group of the run's pods."""
    return run_id


def store(run_id: str, namespace: str) -> str:
    """The store's address, for tasks."""
    return f"http://{keeper(run_id)}-0.{service(run_id)}.{namespace}.svc:{STORE_PORT}"


def hosts_of_jobs(run_id: str, namespace: str) -> str:
    """A task's host name where its pod is of an Indexed Job; with ``{role}`` and ``{index}`` in it."""
    return f"{run_id}-{{role}}-{{index}}.{service(run_id)}.{namespace}.svc"


def hosts_of_tfjob(namespace: str) -> str:
    """A task's host name where its pod is of a TFJob, whichever: the service of a pod has its name, ``{pod}``."""
    return f"{{pod}}.{namespace}.svc"


def broken_rule(name: str) -> str | None:
    """The rule of Kubernetes' that a name breaks, as the end of a sentence."""
    if len(name) > LONGEST:
        return f"has {len(name)} characters, and Kubernetes takes {LONGEST}"
    if not _LABEL.fullmatch(name):
        return "is no DNS label: small letters, digits and -, a letter first and no - last"
    return None
