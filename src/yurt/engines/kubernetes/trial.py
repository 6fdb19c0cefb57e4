"""Pods as the cluster would make them, to be sent as a trial alone (a dry run).

Nothing looks at the pods of a Job or a TFJob before they are made: a quota, a missing account or priority class, a
pod security standard then refuse them one by one, and only an event says so. A trial says it before the run is sent.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from yurt.engines.kubernetes import labels

_INDEXES: Final = (labels.JOB_INDEX, labels.TFJOB_INDEX)


def pods(objects: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The first pod of each role, and the keeper's, of what `render` gives."""
    return [_pod(name, template) for name, template in _templates(objects)]


def _templates(objects: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for each in objects:
        name = each["metadata"]["name"]
        if each["kind"] == "Job":
            yield f"{name}-0", each["spec"]["template"]
        elif each["kind"] == "TFJob":
            for role, replica in each["spec"]["tfReplicaSpecs"].items():
                yield f"{name}-{role.lower()}-0", replica["template"]


def _pod(name: str, template: Mapping[str, Any]) -> dict[str, Any]:
    meta = copy.deepcopy(dict(template["metadata"]))
    # Each controller writes its own; the variable of the index is made of it.
    meta["labels"] |= dict.fromkeys(_INDEXES, "0")
    spec = {"restartPolicy": "Never", **copy.deepcopy(dict(template["spec"]))}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**meta, "name": name}, "spec": spec}
