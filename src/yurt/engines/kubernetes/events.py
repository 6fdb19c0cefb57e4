"""Why tasks do not start: asks for events and what is around them, only while a task waits, and no more than needed."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from yurt.engines.base import Allocation, AllocationState
from yurt.engines.kubernetes.client import Client, KubernetesError
from yurt.engines.kubernetes.diagnosis import Around, Diagnosis, Value
from yurt.engines.kubernetes.kinds import CLAIM, EVENT, JOB, NODE, POD, TFJOB, Kind
from yurt.engines.kubernetes.labels import RUN, WAY_NOTE
from yurt.engines.kubernetes.options import TFJOB as BY_OPERATOR
from yurt.engines.kubernetes.pods import PodWatch
from yurt.engines.kubernetes.reasons import why
from yurt.engines.kubernetes.states import allocations, is_going, newest
from yurt.errors import EngineError

#: Seconds for which a task may wait before anybody is asked, and between two askings.
_AFTER_S: Final = 2.0
_EVERY_S: Final = 3.0
#: Seconds that a scheduler may take to look at a pod, on a busy machine.
_SCHEDULER_S: Final = 15.0
#: Seconds for which what is known of all nodes and their pods is good enough.
_NODES_S: Final = 30.0
#: Nodes from which on the pods of all are not asked for.
_MANY_NODES: Final = 200
#: Seconds for which one question is asked.
_PATIENCE_S: Final = 2.0
#: Events of what goes well.
_GOES_WELL: Final = ("Scheduled", "Created", "Started", "Killing", "SuccessfulDelete", "Completed")
_FIELDS: Final = ",".join(f"reason!={reason}" for reason in _GOES_WELL)


class Events:
    """Of one run. `diagnoses` are those of the tasks that wait, and of the keeper under ``keeper``."""

    def __init__(self, client: Client, namespace: str, run_id: str) -> None:
        self._client = Client(client.session, patience_s=_PATIENCE_S)
        self._namespace = namespace
        self._labels = f"{RUN}={run_id}"
        self._since: dict[str, float] = {}
        self._asked_at = 0.0
        self._nodes_at = 0.0
        self._forbidden: set[str] = set()
        self._around = Around()
        self.diagnoses: dict[str, Diagnosis] = {}

    def explained(self, watch: PodWatch, tasks: Sequence[str]) -> list[Allocation]:
        """`states.allocations` of the watched pods, with the reason why a task waits."""
        pods = watch.pods()
        last: dict[str, Value] = dict(newest(pods))
        found = allocations(pods, tasks)
        waiting = {each.task: last.get(each.task) for each in found if _waits(each)}
        keepers = watch.keepers()
        if keepers and keepers[0]["status"].get("phase") == "Pending":
            waiting["keeper"] = keepers[0]
        now = time.monotonic()
        self._since = {task: self._since.get(task, now) for task in waiting}
        if any(now - since >= _AFTER_S for since in self._since.values()) and now - self._asked_at >= _EVERY_S:
            self._asked_at = now
            self._around = self._ask(waiting)
        self.diagnoses = {}
        for task, pod in waiting.items():
            if (diagnosis := self._why(task, pod, now)) is not None:
                self.diagnoses[task] = diagnosis
        return [self._explained(each) for each in found]

    def _why(self, task: str, pod: Value | None, now: float) -> Diagnosis | None:
        if pod is not None and (is_going(pod) or pod["status"].get("phase") in ("Failed", "Succeeded")):
            pod = None  # another is to come
        if pod is not None and not pod["status"].get("conditions") and now - self._since[task] < _SCHEDULER_S:
            return None  # the scheduler has had no time
        return why(task, pod, self._around)

    def _explained(self, allocation: Allocation) -> Allocation:
        diagnosis = self.diagnoses.get(allocation.task)
        if diagnosis is None:
            return allocation
        return replace(allocation, reason="; ".join(filter(None, (allocation.reason, diagnosis.reason))))

    def _ask(self, waiting: Mapping[str, Value | None]) -> Around:
        """Read what may tell why; what cannot be read stays as it was."""
        around = self._around
        if (events := self._list(EVENT, fields=_FIELDS)) is not None:
            around = replace(around, events=sorted(events, key=_when))
        if any(pod is None or is_going(pod) or pod["status"].get("phase") == "Failed" for pod in waiting.values()):
            around = self._ask_for_owners(around)
        messages = [_scheduling(pod) for pod in waiting.values() if pod is not None]
        if any("unbound" in each for each in messages) and (claims := self._list(CLAIM)) is not None:
            around = replace(around, claims={each["metadata"]["name"]: each for each in claims})
        if any("Insufficient" in each or "taint" in each for each in messages):
            around = self._ask_for_nodes(around)
        return around

    def _ask_for_owners(self, around: Around) -> Around:
        jobs = self._list(JOB, labels=self._labels)
        if jobs is None:
            return around
        around = replace(around, jobs=jobs)
        if any((each["metadata"].get("annotations") or {}).get(WAY_NOTE) == BY_OPERATOR for each in jobs):
            around = replace(around, tfjobs=self._list(TFJOB, labels=self._labels) or ())
        return around

    def _ask_for_nodes(self, around: Around) -> Around:
        now = time.monotonic()
        if around.nodes is not None and now - self._nodes_at < _NODES_S:
            return around
        self._nodes_at = now
        nodes = self._list(NODE)
        pods = None
        if nodes is not None and len(nodes) <= _MANY_NODES:
            pods = self._list(POD, fields="status.phase!=Succeeded,status.phase!=Failed", everywhere=True)
        return replace(around, nodes=nodes, pods=pods)

    def _list(
        self, kind: Kind, *, labels: str = "", fields: str = "", everywhere: bool = False
    ) -> list[dict[str, Any]] | None:
        """None where it may not be read, or nobody answers. What is forbidden is asked for once."""
        what = f"{kind.plural} everywhere" if everywhere else kind.plural
        if what in self._forbidden:
            return None
        try:
            found = self._client.list(kind, self._namespace, labels=labels, fields=fields, everywhere=everywhere)
        except KubernetesError as error:
            if error.status in (403, 404):
                self._forbidden.add(what)
            return None
        except EngineError:
            return None
        items: list[dict[str, Any]] = found["items"]
        return items


def _waits(allocation: Allocation) -> bool:
    """It has no agent, and is to get one."""
    return allocation.state in (AllocationState.PENDING, AllocationState.LOST) or bool(allocation.exit_code)


def _scheduling(pod: Value) -> str:
    conditions = pod["status"].get("conditions") or ()
    return " ".join(str(each.get("message") or "") for each in conditions if each["type"] == "PodScheduled")


def _when(event: Value) -> str:
    series = event.get("series") or {}
    stamps = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next((str(each) for each in stamps if each), str(event["metadata"].get("creationTimestamp") or ""))
