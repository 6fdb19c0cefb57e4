"""The fields of a TFJob by where they stand, to say of a strange one what was meant: training operator 1.9."""

from __future__ import annotations

from typing import Final

from yurt.convert.converted import Note
from yurt.convert.tfjob.tree import Node
from yurt.engines.kubernetes.fields import fields_of
from yurt.job.findings import closest

RUN_POLICY: Final = (
    "cleanPodPolicy", "ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit", "schedulingPolicy", "suspend",
    "managedBy",
)  # fmt: skip
SCHEDULING: Final = ("minAvailable", "queue", "minResources", "priorityClass", "scheduleTimeoutSeconds")
SPEC: Final = ("runPolicy", "successPolicy", "tfReplicaSpecs", "enableDynamicWorker")
REPLICA: Final = ("replicas", "restartPolicy", "template")
TEMPLATE: Final = ("metadata", "spec")
METADATA: Final = ("name", "namespace", "generateName", "labels", "annotations")
POD: Final = (*fields_of("PodSpec"), "ephemeralContainers", "serviceAccount")
CONTAINER: Final = tuple(fields_of("Container"))

#: Each level: its name in a sentence, its fields, and where its fields belong.
_LEVELS: Final = (
    ("a runPolicy", RUN_POLICY, "spec.runPolicy"),
    ("a schedulingPolicy", SCHEDULING, "spec.runPolicy.schedulingPolicy"),
    ("a TFJob's spec", SPEC, "spec"),
    ("a role", REPLICA, "spec.tfReplicaSpecs.ROLE"),
    ("a container", CONTAINER, "spec.tfReplicaSpecs.ROLE.template.spec.containers[]"),
    ("a pod", POD, "spec.tfReplicaSpecs.ROLE.template.spec"),
    ("a pod template", TEMPLATE, "spec.tfReplicaSpecs.ROLE.template"),
    ("the metadata", METADATA, "metadata"),
)


def strange(node: Node, fields: tuple[str, ...]) -> Note:
    """What to say of a field that is none of those that can stand there."""
    name = node.path.rpartition(".")[2].partition("[")[0]
    here = next(level for level, known, _ in _LEVELS if known is fields)
    if right := next((place for _, known, place in _LEVELS if known is not fields and name in known), None):
        return node.note(f"is no field of {here} and is left out: it belongs under {right}")
    near = closest(name, fields)
    return node.note(f"is no field of {here} and is left out" + (f": did you mean {near}?" if near else ""))
