"""The Kubernetes engine: glue of what it renders, sends and watches."""

from __future__ import annotations

import base64
import contextlib
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import BaseModel

from yurt.contract.spec import RunSpec
from yurt.engines.base import Allocation, AllocationState, Capabilities, Place, StoreAt
from yurt.engines.kubernetes import checks, kinds, labels, listing, names, render, trial
from yurt.engines.kubernetes.client import Client, KubernetesError
from yurt.engines.kubernetes.events import Events
from yurt.engines.kubernetes.fetching import fetch_folder, model_in
from yurt.engines.kubernetes.forwarding import Forwarding
from yurt.engines.kubernetes.ground import Ground, look_at
from yurt.engines.kubernetes.listing import last_words, listed
from yurt.engines.kubernetes.logs import Cursor, TaskLog
from yurt.engines.kubernetes.options import NONE, TFJOB, KubernetesOptions
from yurt.engines.kubernetes.pods import PodWatch
from yurt.engines.kubernetes.resubmitting import Resubmitting
from yurt.engines.kubernetes.room import ROOM
from yurt.engines.kubernetes.session import Socket, Unreachable, open_session
from yurt.engines.kubernetes.states import is_going
from yurt.engines.travel.travelling import Parcel, remove, travelling
from yurt.errors import EngineError, RunNotFound, UsageError
from yurt.kv.run_index import Entry
from yurt.kv.run_store import RunStore

#: Seconds that the end of a run's pods is waited for, beyond their grace time.
_GONE_S: Final = 40.0
_PAUSE_S: Final = 0.25
#: Seconds for which an API server that does not answer is asked what the cluster is like.
_LOOK_S: Final = 3.0
_WAITING: Final = AllocationState.PENDING
_NEW_NAMESPACE: Final = 'serviceaccount "default" not found'


class KubernetesEngine:
    """Runs tasks as pods of a TFJob, or of Indexed Jobs. One object serves one run."""

    name: ClassVar[str] = "kubernetes"
    capabilities: ClassVar[Capabilities] = Capabilities(
        store=StoreAt.AGENT,
        brings_back=True,
        machines=True,
        images=True,
        holds_memory=True,
        holds_cpus=True,
        gpus=True,
    )
    options: ClassVar[type[BaseModel]] = KubernetesOptions

    def __init__(self) -> None:
        self._options = KubernetesOptions()
        self._opened: Client | None = None
        self._unknown: EngineError | None = None  # why nothing is known of the cluster
        self._run: str | None = None
        self._spec: RunSpec | None = None
        self._namespace = ""
        self._way = NONE
        self._resubmitting: Resubmitting | None = None
        self._token = ""
        self._parcel: Parcel | None = None
        self._ours = True  # whether the run's end here is its end in the cluster
        self._watch: PodWatch | None = None
        self._events: Events | None = None
        self._logs: dict[str, TaskLog] = {}
        self._forwarding: Forwarding | None = None
        self.notes: list[str] = []
        self.on_handle: Callable[[], None] = lambda: None

    # Before a run.

    def facts(self, options: BaseModel) -> Ground:
        """What the cluster is like; without a cluster nothing, and why."""
        assert isinstance(options, KubernetesOptions)
        self._options = options
        try:
            return look_at(Client(self._client.session, patience_s=_LOOK_S), options)
        except UsageError:
            raise
        except EngineError as error:
            self._unknown = error
            return Ground(unknown=f"nothing is known of the cluster: {error}", namespace=options.namespace or "default")

    def prepare(self, run: RunSpec, options: BaseModel) -> str:
        """The store is in the cluster."""
        raise EngineError(
            f"{run.run_id} keeps its state in the cluster, not in the launcher ({type(options).__name__})"
        )

    def render(self, run: RunSpec, place: Place, options: BaseModel, facts: Any) -> Mapping[str, Any]:
        """See `yurt.engines.kubernetes.render`. Raises UsageError for what the cluster would not take, or never run."""
        assert isinstance(options, KubernetesOptions)
        self._options, self._spec, self._token = options, run, place.token
        if problems := checks.problems(run, options, facts):
            first, *others = problems
            raise UsageError(first, hint="\n      ".join(others) or None)
        return render.render(run, place, options, facts)

    def submit(self, request: Mapping[str, Any]) -> None:
        """Make the run's objects, its owner first. Raises EngineError; `cancel` then removes what was made."""
        assert self._spec
        if self._unknown is not None:
            raise self._unknown
        client = self._client
        self._run, self._namespace, self._way = request["run"], request["namespace"], request["way"]
        self._follow({task.name: Cursor() for task in self._spec.tasks})
        self.on_handle()
        packed = travelling(
            self._run, Path(request["agent"]), Path(request["files"]), ROOM, self._options, self._spec.output
        )
        self._parcel = packed.parcel
        if self._parcel is not None:
            self.on_handle()
        if not client.may("watch", kinds.POD, namespace=self._namespace):
            raise KubernetesError(
                f"this account may not watch pods in the namespace {self._namespace}, and a run cannot be followed",
                status=403,
                hint="`yurt doctor --on kubernetes` names all rights that are missing",
                missing_right=True,
            )
        if unseen := [verb for verb in ("create", "get") if not self._may_forward(verb)]:
            what = f"this account may not {' nor '.join(unseen)} pods/portforward in the namespace {self._namespace}"
            self.notes.append(f"{what}: how far the run is cannot be seen before its end")
        self._try(request["objects"])
        owner, *others = render.with_payload(request["objects"], packed.text)
        made = client.create(owner, self._namespace)
        for value in render.owned(others, made["metadata"]["uid"]):
            client.create(value, self._namespace)

    def _may_forward(self, verb: str) -> bool:
        return self._client.may(verb, kinds.POD, "portforward", self._namespace)

    def _try(self, objects: Sequence[Mapping[str, Any]]) -> None:
        """See whether the cluster would take the pods: nobody looks at those of a Job or a TFJob before they are made.

        Raises EngineError. Without the right to create pods there is no trial.
        """
        for pod in trial.pods(objects):
            try:
                self._client.create(pod, self._namespace, dry_run=True)
            except KubernetesError as error:
                if error.status == 403 and error.missing_right:
                    return
                if _NEW_NAMESPACE in str(error):
                    return  # the cluster makes it a moment after the namespace
                if "violates PodSecurity" in str(error) and not self._options.restricted:
                    hint = "engines: kubernetes: restricted: true makes pods that keep to it"
                    raise EngineError(str(error), hint=hint) from error
                if "exceeded quota" not in str(error):
                    raise
                self.notes.append(f"not all tasks can start now: {error}")

    # A run.

    def handle(self) -> Mapping[str, Any]:
        """What another process needs to take this run on where it is now: see `adopt`."""
        return {
            "run": self._run,
            "context": self._client.session.context,
            "namespace": self._namespace,
            "token": self._token,
            "logs": {task: asdict(log.cursor) for task, log in self._logs.items()},
            "parcel": asdict(self._parcel) if self._parcel else None,
            "ours": self._ours,
            "way": self._way,
            "keep": self._options.keep,
        }

    def adopt(self, handle: Mapping[str, Any]) -> None:
        """Take on a run that another process has submitted."""
        self._run, self._namespace, self._token = handle["run"], handle["namespace"], handle["token"]
        self._ours, self._way = handle["ours"], handle["way"]
        self._options = KubernetesOptions(context=handle["context"], namespace=handle["namespace"], keep=handle["keep"])
        self._parcel = Parcel(**handle["parcel"]) if handle.get("parcel") else None
        self._follow({task: Cursor(**value) for task, value in handle["logs"].items()})

    def describe(self) -> list[Allocation]:
        """The newest pod of each task as it was last seen; a task without one is pending, with the reason.

        Raises Unreachable where the API server has not answered for a while.
        """
        if self._watch is None:
            return []
        self._watch.check()
        for task, pods in self._watch.by_task().items():
            for pod in pods if task in self._logs else ():
                self._logs[task].take(pod)
        assert self._events
        found = self._events.explained(self._watch, list(self._logs))
        if self._way != TFJOB:
            return found
        # One lost pod takes all others of a TFJob with it: whoever submits it again counts that, once.
        return [replace(each, id="", state=_WAITING) if each.state is AllocationState.LOST else each for each in found]

    def bring_back(self, task: str) -> None:
        """Kubernetes does that itself."""
        raise EngineError(f"Kubernetes brings {task} back itself")

    def logs(self, task: str, offset: int) -> tuple[bytes, int]:
        """The task's output over all its pods, one after another; it is read forward, once."""
        log = self._logs[task]
        if offset != log.cursor.position:
            raise ValueError(f"the log of {task} is read forward: at {log.cursor.position}, not {offset}")
        return log.read(), log.cursor.position

    def let_go(self) -> None:
        """Look after it no longer, and leave all that it has in the cluster."""
        self._let_go()

    def cancel(self) -> None:
        """Remove the run's objects and wait until its pods are gone; those on dead nodes are not waited for.

        A run that is to be kept, or is another machine's, is only let go.
        """
        try:
            if self._run is not None and self._ours and not self._options.keep:
                self._remove(self._run)
            if self._parcel is not None:
                remove(self._parcel)
                self._parcel = None
        finally:
            self._let_go()

    # Its store, which is in the cluster.

    def look_after(self, runs: RunStore) -> None:
        """Submit a lost TFJob again."""
        if self._resubmitting is not None:
            self._resubmitting.look(runs)

    def waiting(self) -> Mapping[str, tuple[str, bool]]:
        """Of tasks and of the keeper itself."""
        found = self._events.diagnoses if self._events else {}
        return {task: (each.reason, each.hopeless) for task, each in found.items()}

    def store(self) -> tuple[str, str]:
        """A port of this machine that leads to the keeper, and the run's token."""
        if self._forwarding is None:
            self._forwarding = Forwarding(self._connect)
        return self._forwarding.address, self._token

    def last_words(self) -> Mapping[str, Any] | None:
        """The keeper's termination message, once it has ended for good."""
        if self._watch is None:
            return None
        for pod in self._watch.keepers() if self._watch else ():
            if pod["status"].get("phase") in ("Succeeded", "Failed") and not is_going(pod):
                return last_words(pod)
        return None

    def gone(self) -> bool:
        """Whether the owner of the run's objects is not there any more, or is being removed."""
        assert self._run
        try:
            owner = self._client.get(kinds.JOB, names.keeper(self._run), self._namespace)
        except EngineError:  # nobody answers, or nobody is allowed to ask
            return False
        return owner is None or "deletionTimestamp" in owner["metadata"]

    def take_over(self, run_id: str) -> RunSpec:
        """Find a run by its owner in the namespace of the context, or raise RunNotFound."""
        client = self._client
        secret = client.get(kinds.SECRET, names.order(run_id))
        if secret is None:
            raise RunNotFound(f"{client.session.where} has no run {run_id} in the namespace {client.namespace}")
        order = json.loads(base64.b64decode(secret["data"]["run.json"]))
        spec = RunSpec.from_json(order["config"]["run"])
        self._run, self._namespace, self._token = run_id, client.namespace, order["config"]["token"]
        self._ours, self._spec, self._way = False, spec, order["way"]
        self._follow({task.name: Cursor() for task in spec.tasks})
        return spec

    def runs(self) -> list[Entry]:
        """By their owners, which carry what they are as an annotation, and their keepers' pods. Two requests."""
        return listed(
            self._client.list(kinds.JOB, labels=listing.SELECTOR)["items"],
            self._client.list(kinds.POD, labels=listing.SELECTOR)["items"],
        )

    def forget(self, run_id: str) -> None:
        """Its owner, and with it the rest."""
        self._client.delete(kinds.JOB, names.keeper(run_id))

    def fetch_model(self, task: str, saves_to: str | None, folder: Path) -> None:
        """From the task's pod, which stays for a while where its model could not be published."""
        assert self._watch
        pods = self._watch.by_task().get(task, [])
        kept = [pod for pod in pods if pod["status"].get("phase") == "Running" and not is_going(pod)]
        if not kept:
            raise EngineError(
                f"the pod of {task} is gone, and the model with it",
                hint="engines: kubernetes: keep_model_s says how long it stays",
            )
        fetch_folder(self._client.session, dict(kept[-1]), model_in(saves_to), folder)

    # How.

    @property
    def _client(self) -> Client:
        if self._opened is None:
            self._opened = Client(open_session(self._options.context, self._options.namespace))
        return self._opened

    def _follow(self, cursors: Mapping[str, Cursor]) -> None:
        assert self._run
        self._watch = PodWatch(self._client, self._namespace, f"{labels.RUN}={self._run}")
        self._events = Events(self._client, self._namespace, self._run)
        if self._way == TFJOB:
            self._resubmitting = Resubmitting(self._client, self._run, self._namespace)
        self._logs = {task: TaskLog(self._client, self._namespace, cursor) for task, cursor in cursors.items()}

    def _connect(self) -> Socket:
        for pod in self._watch.keepers() if self._watch else ():
            if pod["status"].get("phase") == "Running" and not is_going(pod):
                return self._client.session.forward(self._namespace, pod["metadata"]["name"], names.STORE_PORT)
        raise Unreachable("the pod that keeps the run's state is not running")

    def _remove(self, run_id: str) -> None:
        client = self._client
        client.delete(kinds.JOB, names.keeper(run_id), self._namespace)
        end = time.monotonic() + _GONE_S
        while time.monotonic() < end:
            left = client.list(kinds.POD, self._namespace, labels=f"{labels.RUN}={run_id}")["items"]
            if not any(_here(pod) for pod in left):
                return
            time.sleep(_PAUSE_S)

    def _let_go(self) -> None:
        if self._watch is not None:
            self._watch.stop()
        for log in self._logs.values():
            with contextlib.suppress(EngineError):
                log.close()
        if self._forwarding is not None:
            self._forwarding.close()
            self._forwarding = None


def _here(pod: Mapping[str, Any]) -> bool:
    """Whether it runs, or may: a pod of a dead node stays as it is until the node object goes."""
    lost = any(
        each["type"] == "DisruptionTarget" and each.get("reason") == "DeletionByTaintManager"
        for each in pod["status"].get("conditions", ())
    )
    return not lost
