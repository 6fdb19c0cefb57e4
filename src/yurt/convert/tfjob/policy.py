"""What a TFJob says once for all roles: when it ends, how often it may start again, what is left of it."""

from __future__ import annotations

from typing import Any, Final

from yurt.convert.converted import Note
from yurt.convert.tfjob import fields
from yurt.convert.tfjob.parts import RoleRead
from yurt.convert.tfjob.tree import Node, shown
from yurt.job import RestartPolicy, RoleName, SuccessRule

KUEUE: Final = "kueue.x-k8s.io/queue-name"
_CLEAN: Final = ("None", "Running", "All")
#: The shape's versions in which the policy stands right under spec.
_OLD: Final = ("v1alpha1", "v1alpha2", "v1beta1", "v1beta2")
_MISSPELT: Final = {"ttlSecondsAfterFinishing": "ttlSecondsAfterFinished"}


def read_policy(
    job: Node, spec: Node, roles: list[RoleRead], notes: list[Note]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Keys of the job, and options of the Kubernetes engine."""
    policy = spec.mapping("runPolicy")
    found: dict[str, Node] = {}
    version = job.string("apiVersion") or ""
    for key in fields.RUN_POLICY:
        inside = policy.get(key) if policy is not None else None
        outside = spec.get(key)
        if outside is not None and version.rpartition("/")[2] not in _OLD:
            message = "belongs under spec.runPolicy: kubectl refuses it here"
            notes.append(
                outside.note(f"{message}, and it is taken" if inside is None else f"{message}; that one counts")
            )
        if (chosen := inside or outside) is not None:
            found[key] = chosen
    for key, inner in {} if policy is None else policy.value.items():
        if key not in fields.RUN_POLICY and inner.value is not None:
            inner.plain()
            notes.append(fields.strange(inner, fields.RUN_POLICY))
    data: dict[str, Any] = {}
    options: dict[str, Any] = {}
    if deadline := found.get("activeDeadlineSeconds"):
        data["deadline"] = _whole(deadline, 1)
    if ttl := found.get("ttlSecondsAfterFinished"):
        options["keep_s"] = _whole(ttl, 0)
    if clean := found.get("cleanPodPolicy"):
        options["clean_pod_policy"] = _clean(clean)
    if suspend := found.get("suspend"):
        if not isinstance(suspend.value, bool):
            suspend.refuse(f"must be true or false, not {shown(suspend)}")
        if suspend.value:
            options["suspend"] = True
    if managed := found.get("managedBy"):
        options["managed_by"] = managed.as_text()
    if scheduling := found.get("schedulingPolicy"):
        _scheduling(scheduling, options, notes)
    _restarts(roles, found.get("backoffLimit"), data, notes)
    _success(spec, roles, data, notes)
    _dynamic(spec, notes)
    _old_affairs(spec, roles, notes)
    return data, options


def _whole(node: Node, least: int) -> int:
    if isinstance(node.value, bool) or not isinstance(node.value, int) or node.value < least:
        node.refuse(f"must be a whole number of at least {least}, not {shown(node)}")
    return int(node.value)


def _clean(node: Node) -> str:
    if node.value not in _CLEAN:
        node.refuse(f"must be one of {', '.join(_CLEAN)}, not {shown(node)}")
    return str(node.value)


def _scheduling(node: Node, options: dict[str, Any], notes: list[Note]) -> None:
    if not isinstance(node.value, dict):
        node.refuse(f"must be a mapping, not {shown(node)}")
    given: dict[str, Any] = {}
    if (count := node.whole("minAvailable")) is not None:
        given["min_available"] = count
    for key, option in (("queue", "queue"), ("priorityClass", "priority_class")):
        if text := node.string(key):
            given[option] = text
    if resources := node.mapping("minResources"):
        given["min_resources"] = {name: amount.as_text() for name, amount in resources.value.items()}
        resources.plain()
    if (timeout := node.whole("scheduleTimeoutSeconds")) is not None:
        given["timeout_s"] = timeout
    for key, inner in node.value.items():
        if key not in fields.SCHEDULING and inner.value is not None:
            inner.plain()
            notes.append(fields.strange(inner, fields.SCHEDULING))
    if given:
        options["scheduling"] = {"by": "volcano", **given}


def _restarts(roles: list[RoleRead], limit: Node | None, data: dict[str, Any], notes: list[Note]) -> None:
    """One rule and one limit for the whole run."""
    policies = list(dict.fromkeys(role.restart for role in roles if not role.standard_server)) or [RestartPolicy.NEVER]
    ranks = list(_RANK)
    chosen = max(policies, key=ranks.index)
    if len(policies) > 1:
        words = ", ".join(f"{role.name} {role.restart}" for role in roles)
        notes.append(
            roles[0].node.note(f"restartPolicy differs between the roles ({words}); a run has one rule: {chosen}")
        )
    data["restart"] = str(chosen)
    if chosen is RestartPolicy.ALWAYS:
        notes.append(
            roles[0].node.note(
                "restartPolicy Always: a task that exited 0 is not run again, as a TFJob would do for ever"
            )
        )
    if limit is not None:
        data["max_restarts"] = _whole(limit, 0)
    elif chosen is not RestartPolicy.NEVER:
        notes.append(
            (roles[0].node.peek("restartPolicy") or roles[0].node).note(
                "has no limit without a backoffLimit, and a run has 3 restarts: `max_restarts`"
            )
        )


#: From the rule that restarts least to the one that restarts most.
_RANK: Final = (RestartPolicy.NEVER, RestartPolicy.EXIT_CODE, RestartPolicy.ON_FAILURE, RestartPolicy.ALWAYS)


def _success(spec: Node, roles: list[RoleRead], data: dict[str, Any], notes: list[Note]) -> None:
    node = spec.get("successPolicy")
    if node is None or node.value == "":
        return
    if node.value not in ("AllWorkers", "ChiefWorker"):
        node.refuse(f"must be AllWorkers, or empty, not {shown(node)}")
    if node.value == "AllWorkers":
        if any(role.name is RoleName.CHIEF for role in roles):
            notes.append(
                node.note(
                    "AllWorkers is ignored beside a chief, by the operator and so here; `success: all-workers` asks it"
                )
            )
        else:
            data["success"] = str(SuccessRule.ALL_WORKERS)


def _dynamic(spec: Node, notes: list[Note]) -> None:
    node = spec.get("enableDynamicWorker")
    if node is not None and node.value is True:
        notes.append(
            node.note(
                "is left out: every task sees the whole cluster spec; under parameter-server a worker that fails comes "
                "back alone"
            )
        )


def _old_affairs(spec: Node, roles: list[RoleRead], notes: list[Note]) -> None:
    """What v1alpha1 alone has: which task decides, the image of ps without a template, a TensorBoard."""
    if termination := spec.mapping("terminationPolicy"):
        chief = termination.mapping("chief") or Node({}, "", spec.file, spec.line, spec.column)
        name, index = chief.string("replicaName") or "MASTER", chief.whole("replicaIndex") or 0
        has_chief = any(role.name is RoleName.CHIEF for role in roles)
        if (name.lower() == "worker" and has_chief) or index:
            notes.append(
                termination.note(f"{name} {index} is not the task that decides here: the chief, else worker 0 is")
            )
    if image := spec.get("tfImage"):
        served = [role for role in roles if role.standard_server]
        if not served:
            notes.append(image.note("is left out: every role has a template with its image"))
        else:
            notes.append(image.note("is left out: the servers run in the image of the other roles"))
    if board := spec.get("tensorboard") or spec.get("tensorBoard"):
        board.plain()
        notes.append(board.note("is left out: `track: tensorboard` logs every fit, and TensorBoard shows it"))
    spec.get("RuntimeId")
    spec.get("cloud")
