"""The Nomad engine: glue of what it renders, sends and reads."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from pydantic import BaseModel

from yurt.contract.spec import RunSpec
from yurt.engines.base import Allocation, AllocationState, Capabilities, Place, StoreAt
from yurt.engines.nomad import fit, render
from yurt.engines.nomad.address import NomadError, from_environment
from yurt.engines.nomad.client import NomadClient
from yurt.engines.nomad.fetch import fetch_folder, model_path
from yurt.engines.nomad.forgotten import changed, is_forgotten
from yurt.engines.nomad.logs import Cursor, TaskLog
from yurt.engines.nomad.nodes import Cluster, node_of
from yurt.engines.nomad.options import NomadOptions
from yurt.engines.nomad.room import room_for
from yurt.engines.nomad.states import allocation_of, newest, task_of
from yurt.engines.travel.travelling import Parcel, remove, travelling
from yurt.errors import EngineError

#: Seconds between two reads of the evaluations: they change when the scheduler has run.
_EVALUATIONS_S: Final = 2.0
#: Seconds that a lost task has no successor before Nomad is asked to look again, and between two such questions.
_FORGOTTEN_S: Final = 10.0
#: Seconds that the end of a job's allocations is waited for, beyond their kill timeout of 30 s at most.
_GONE_S: Final = 40.0


class NomadEngine:
    """Runs tasks as allocations of one Nomad job. One object serves one run."""

    name: ClassVar[str] = "nomad"
    capabilities: ClassVar[Capabilities] = Capabilities(
        store=StoreAt.CONSUL,
        brings_back=True,
        machines=True,
        images=False,
        holds_memory=False,
        holds_cpus=False,
        gpus=True,
    )
    options: ClassVar[type[BaseModel]] = NomadOptions

    def __init__(self) -> None:
        self._client = NomadClient(from_environment())
        self._options = NomadOptions()
        self._cluster = Cluster()
        self._job_id: str | None = None
        self._output: str | None = None
        self._parcel: Parcel | None = None
        self._log_bytes: Mapping[str, int] = {}
        self._logs: dict[str, TaskLog] = {}
        self._lock = threading.Lock()  # logs are read by another thread than the rest
        self._blocked: dict[str, str] = {}
        self._blocked_at = 0.0
        self._lost_since: dict[str, float] = {}  # by allocation
        self.notes: list[str] = []
        self.on_handle: Callable[[], None] = lambda: None

    def facts(self, options: BaseModel) -> Cluster:
        """The nodes of the region that the options name; without a cluster none, and why."""
        assert isinstance(options, NomadOptions)
        self._go_to(options)
        try:
            nodes = tuple(node_of(self._client.node(each["ID"])) for each in self._client.nodes())
            self._cluster = Cluster(nodes, self._client.version())
        except EngineError as error:
            self._cluster = Cluster(unknown=f"nothing is known of the cluster's nodes: {error}")
        return self._cluster

    def render(self, run: RunSpec, place: Place, options: BaseModel, facts: Any) -> Mapping[str, Any]:
        """See `yurt.engines.nomad.render`."""
        assert isinstance(options, NomadOptions)
        self._options = options
        self._go_to(options)
        self._output = run.output
        return render.render(run, place, options, facts)

    def _go_to(self, options: NomadOptions) -> None:
        """Speak to the region and the namespace that the job names from now on."""
        if options.region or options.namespace:
            address = self._client.address
            region, namespace = options.region or address.region, options.namespace or address.namespace
            self._client = NomadClient(replace(address, region=region, namespace=namespace))

    def prepare(self, run: RunSpec, options: BaseModel) -> str:
        """The store is Consul."""
        raise EngineError(f"{run.run_id} keeps its state in Consul, not in the launcher ({type(options).__name__})")

    def submit(self, request: Mapping[str, Any]) -> None:
        """Ask whether it can ever fit, then send it. Raises EngineError."""
        job = request["job"]
        if problems := fit.never(job, self._cluster, self._options):
            raise EngineError(f"the job can never be placed: {'; '.join(problems)}", hint="see `nomad node status`")
        self._client.job(job["ID"])  # a right that the run will need: refused here, nothing is left behind
        source = request["payload"]
        failed = self._client.plan(job).get("FailedTGAllocs")
        if misfits := fit.hopeless(failed):
            raise EngineError(
                f"the job cannot be placed: {'; '.join(map(str, misfits))}", hint="see `nomad node status`"
            )
        self.notes = [f"not all tasks can start now: {misfit}" for misfit in fit.waiting(failed)]
        logs = {group["Name"]: group["Tasks"][0]["LogConfig"]["MaxFileSizeMB"] << 20 for group in job["TaskGroups"]}
        tasks = [f"{group['Name']}/{index}" for group in job["TaskGroups"] for index in range(group["Count"])]
        self._adopt(job["ID"], {task: Cursor() for task in tasks}, logs)  # first: an answer may be lost on its way
        self.on_handle()
        agent, files, room = Path(source["agent"]), Path(source["files"]), room_for(len(job["TaskGroups"]))
        packed = travelling(job["ID"], agent, files, room, self._options, self._output)
        self._parcel = packed.parcel
        if self._parcel is not None:
            self.on_handle()
        self._client.register(render.with_payload(job, packed.text))

    def handle(self) -> Mapping[str, Any]:
        """What another process needs to take this run on where it is now: see `adopt`."""
        return {
            "job": self._job_id,
            "region": self._client.address.region,
            "namespace": self._client.address.namespace,
            "log_bytes": dict(self._log_bytes),
            "logs": {task: asdict(log.cursor) for task, log in self._logs.items()},
            "parcel": asdict(self._parcel) if self._parcel else None,
        }

    def adopt(self, handle: Mapping[str, Any]) -> None:
        """Take on a run that another process has submitted."""
        cursors = {task: Cursor(**value) for task, value in handle["logs"].items()}
        self._client = NomadClient(
            replace(self._client.address, region=handle["region"], namespace=handle["namespace"])
        )
        self._parcel = Parcel(**handle["parcel"]) if handle.get("parcel") else None
        self._adopt(handle["job"], cursors, handle["log_bytes"])

    def _adopt(self, job_id: str, cursors: Mapping[str, Cursor], log_bytes: Mapping[str, int]) -> None:
        self._job_id, self._log_bytes = job_id, log_bytes
        for task, cursor in cursors.items():
            largest = log_bytes[task.partition("/")[0]]
            self._logs[task] = TaskLog(render.TASK, self._client.read_file, self._client.list_files, largest)
            self._logs[task].cursor = cursor

    def describe(self) -> list[Allocation]:
        """The newest allocation of each task; a task without one is pending, with the scheduler's reason."""
        if self._job_id is None:
            return []
        values, _ = self._client.allocations(self._job_id)
        with self._lock:
            for value in sorted(values, key=lambda each: each["CreateIndex"]):
                if (task := task_of(value)) in self._logs:
                    self._logs[task].take(value["ID"])
        last = newest(values)
        blocked = self._why_blocked() if len(last) < len(self._logs) else {}
        return [
            allocation_of(last[task])
            if task in last
            else Allocation("", task, AllocationState.PENDING, reason=blocked.get(task.partition("/")[0]))
            for task in self._logs
        ]

    def bring_back(self, task: str) -> None:
        """Nomad does that itself."""
        raise EngineError(f"Nomad brings {task} back itself")

    def remind(self, lost: Sequence[Allocation]) -> None:
        """Have the job placed anew where Nomad has forgotten a task: see `yurt.engines.nomad.forgotten`."""
        assert self._job_id
        now = time.monotonic()
        self._lost_since = {each.id: self._lost_since.get(each.id, now) for each in lost}
        late = [each.task for each in lost if now - self._lost_since[each.id] >= _FORGOTTEN_S]
        if not late:
            return
        self._lost_since = {}
        last = newest(self._client.allocations(self._job_id)[0])
        values = [last[task] for task in late if task in last]
        if not is_forgotten(values, self._client.evaluations(self._job_id)):
            return
        job = self._client.job(self._job_id)
        if job is not None and not job.get("Stop"):
            self._client.change(changed(job))

    def logs(self, task: str, offset: int) -> tuple[bytes, int]:
        """The task's output over all its allocations, one after another; it is read forward, once."""
        log = self._logs[task]
        if offset != log.cursor.position:
            raise ValueError(f"the log of {task} is read forward: at {log.cursor.position}, not {offset}")
        with self._lock:
            data = log.read()
        return data, log.cursor.position

    def fetch_model(self, task: str, saves_to: str | None, folder: Path) -> None:
        """From the task's last allocation, by Nomad's own API."""
        assert self._job_id
        last = newest(self._client.allocations(self._job_id)[0]).get(task)
        if last is None:
            raise EngineError(
                f"Nomad keeps nothing of {self._job_id} any more, and its model went with the allocation of {task}",
                hint="an output in the job file keeps the models of runs to come",
            )
        fetch_folder(self._client, last, model_path(render.TASK, saves_to), folder)

    def cancel(self) -> None:
        """End the job and wait until its allocations are gone; those on nodes that do not answer are not waited for.

        What it has in a bucket goes last.
        """
        if self._job_id is not None:
            self._end_job(self._job_id)
        if self._parcel is not None:
            remove(self._parcel)
            self._parcel = None

    def _end_job(self, job_id: str) -> None:
        self._client.deregister(job_id)
        end = time.monotonic() + _GONE_S
        index = 0
        while time.monotonic() < end:
            values, index = self._client.allocations(job_id, index, 5.0 if index else 0.0)
            if all(value["ClientStatus"] in ("complete", "failed", "lost", "unknown") for value in values):
                return

    def _why_blocked(self) -> Mapping[str, str]:
        """The scheduler's last word for each role that it could not place."""
        now = time.monotonic()
        assert self._job_id
        if now - self._blocked_at >= _EVALUATIONS_S:
            self._blocked_at = now
            try:
                evaluations = self._client.evaluations(self._job_id)
            except NomadError:
                return self._blocked
            last = sorted(evaluations, key=lambda each: each["ModifyIndex"])
            self._blocked = {
                misfit.role: misfit.reason for each in last for misfit in fit.waiting(each.get("FailedTGAllocs"))
            }
        return self._blocked
