"""The Docker engine: glue of what it renders, asks of the daemon and reads."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

from pydantic import BaseModel

from yurt.contract.spec import RunSpec
from yurt.engines.base import Allocation, AllocationState, Capabilities, Place, StoreAt
from yurt.engines.docker import ground, owner, render
from yurt.engines.docker.options import DockerOptions
from yurt.engines.docker.states import CANNOT_RUN, state_of
from yurt.engines.log_file import read_from
from yurt.engines.work_folder import mirror
from yurt.errors import EngineError, UsageError

if TYPE_CHECKING:
    from yurt.engines.docker.client import Daemon

#: Containers that are started or removed at the same time.
_AT_ONCE: Final = 8
#: Seconds that a daemon that was there may be away (it is started again) before the run is given up.
_AWAY_S: Final = 60.0
#: Seconds that a container has to look at its image.
_LOOK_S: Final = 120.0


class DockerEngine:
    """Runs tasks in containers of the local daemon. One object serves one run."""

    name: ClassVar[str] = "docker"
    capabilities: ClassVar[Capabilities] = Capabilities(
        store=StoreAt.LAUNCHER,
        brings_back=False,
        machines=False,
        images=True,
        holds_memory=True,
        holds_cpus=True,
        gpus=True,
        agent_publishes=False,
    )
    options: ClassVar[type[BaseModel]] = DockerOptions

    def __init__(self) -> None:
        self._connected: Daemon | None = None
        self._run: str | None = None
        self._own_network = False
        self._agents: dict[str, Mapping[str, Any]] = {}
        self._containers: dict[str, str] = {}
        self._starts: dict[str, int] = {}
        self._gone: set[str] = set()
        self._ended: dict[str, Mapping[str, Any]] = {}
        self._last: list[Allocation] = []
        self._away_since: float | None = None

    @property
    def _daemon(self) -> Daemon:
        """The daemon, spoken to for the first time here: importing its client takes a third of a second."""
        if self._connected is None:
            from yurt.engines.docker.client import Daemon

            self._connected = Daemon()
        return self._connected

    def facts(self, options: BaseModel) -> ground.Ground:  # noqa: ARG002 - one daemon
        """The daemon's machine; where no daemon is, this one: a run can be rendered anywhere."""
        try:
            return ground.look(self._daemon.info())
        except EngineError:
            return ground.look({})

    def prepare(self, run: RunSpec, options: BaseModel) -> str:
        """Look for the daemon and the image, remove what dead runs left, make the run's network."""
        assert isinstance(options, DockerOptions)
        self._need_image(run)
        with contextlib.suppress(EngineError):  # what cannot be removed now stands in no run's way
            self.leftovers(remove=True)
        if options.network == render.HOST_NETWORK:
            return options.store_host or "127.0.0.1"
        self._run = run.run_id
        if options.network is None:
            self._daemon.create_network(render.network(run, self.facts(options)))
            self._own_network = True
        name = options.network or run.run_id
        address = options.store_host or self._daemon.gateway(name)
        if address is None or not ground.is_own(address):
            raise UsageError(
                f"this machine has no address in the network {name} ({address}), so its tasks cannot reach the store",
                hint="name one that containers reach: engines: {docker: {store_host: ADDRESS}}",
            )
        return address

    def render(self, run: RunSpec, place: Place, options: BaseModel, facts: Any) -> Mapping[str, Any]:
        """See `yurt.engines.docker.render`."""
        assert isinstance(options, DockerOptions)
        return render.render(run, place, options, facts)

    def submit(self, request: Mapping[str, Any]) -> None:
        """Start all containers."""
        self._run = request["run"]
        self._agents = {agent["task"]: agent for agent in request["agents"]}
        _each(self._start, self._agents)

    def describe(self) -> list[Allocation]:
        """Every container, as the daemon has it now; as it had it last while the daemon is away for a moment."""
        from yurt.engines.docker.client import DaemonAway

        try:
            self._start_again()
            rows = self._daemon.containers(f"{owner.RUN}={self._run}")
            by_task = {row["Labels"][owner.TASK]: row for row in rows if row["Id"] in self._containers.values()}
            self._last = [self._allocation(task, by_task.get(task)) for task in self._agents]
            self._away_since = None
        except DaemonAway as error:
            if self._away_too_long():
                return [_lost(each, str(error)) for each in self._last]
        return self._last

    def bring_back(self, task: str) -> None:
        """Start another container for this task, or once the daemon is back."""
        from yurt.engines.docker.client import DaemonAway

        self._gone.add(task)
        self._last = [
            replace(each, state=AllocationState.PENDING) if each.task == task else each for each in self._last
        ]
        try:
            self._start_again()
        except DaemonAway:
            if self._away_too_long():
                raise

    def logs(self, task: str, offset: int) -> tuple[bytes, int]:
        """From the task's log file, into which its container writes."""
        return read_from(self._agents[task]["log"], offset)

    def cancel(self) -> None:
        """Kill and remove the containers, and the run's network."""
        if self._run is None:
            return
        try:
            _each(self._daemon.remove, [row["Id"] for row in self._daemon.containers(f"{owner.RUN}={self._run}")])
            if self._own_network:
                self._daemon.remove_network(self._run)
        except EngineError:
            pass  # without the store its agents end by themselves; the next run removes what is left

    def look(self, run: RunSpec, agent: Mapping[str, Any]) -> Mapping[str, Any]:
        """The preflight of a task, in a container of its image that runs nothing else."""
        self._need_image(run)
        _make_folders(agent)
        (Path(agent["folder"]).parents[1] / "checkpoints").mkdir(exist_ok=True)
        container = self._daemon.start(None, render.looking(agent)["container"], json.dumps(agent["config"]))
        try:
            self._daemon.wait(container, _LOOK_S)
        finally:
            self._daemon.remove(container)
        said = read_from(agent["log"], 0)[0].decode(errors="replace").strip().rpartition("\n")[2]
        try:
            found: Mapping[str, Any] = json.loads(said)
        except ValueError:
            return {"problem": said.removeprefix("yurt: ") or "the image could not be looked at"}
        return found

    def leftovers(self, *, remove: bool) -> list[str]:
        """Containers and networks of runs whose launcher is gone."""
        containers = [row for row in self._daemon.containers(owner.OWNER) if owner.is_dead(row["Labels"][owner.OWNER])]
        networks = [row for row in self._daemon.networks(owner.OWNER) if owner.is_dead(row["Labels"][owner.OWNER])]
        if remove:
            _each(self._daemon.remove, [row["Id"] for row in containers])
            for row in networks:
                self._daemon.remove_network(row["Id"])
        return [
            *(f"container {row['Names'][0].lstrip('/')}" for row in containers),
            *(f"network {row['Name']}" for row in networks),
        ]

    def _need_image(self, run: RunSpec) -> None:
        image = render.image_of(run)
        if not self._daemon.has_image(image):
            raise EngineError(
                f"the image {image} is not on this machine",
                hint=f"docker pull {image}, or make one for the job: yurt image build JOB.yaml",
            )

    def _start_again(self) -> None:
        """Containers for the tasks that have lost theirs; a name is free once the old one is removed."""
        for task in sorted(self._gone):
            self._daemon.remove(self._containers[task])
            self._start(task)
            self._gone.discard(task)

    def _away_too_long(self) -> bool:
        """Whether the daemon, which does not answer now, has not for a minute."""
        self._away_since = self._away_since or time.monotonic()
        return time.monotonic() - self._away_since > _AWAY_S

    def _start(self, task: str) -> None:
        agent = self._agents[task]
        count = self._starts[task] = self._starts.get(task, 0) + 1
        config = {**agent["config"], "allocation": f"{task.replace('/', '-')}-{count - 1}"}
        _make_folders(agent)
        self._containers[task] = self._daemon.start(agent["name"], agent["container"], json.dumps(config))

    def _allocation(self, task: str, row: Mapping[str, Any] | None) -> Allocation:
        """`row` is the container as listed, or None where it is gone."""
        container = self._containers[task]
        status = row["State"] if row else None
        ended: Mapping[str, Any] = {}
        if status == "exited":
            if container not in self._ended:
                self._ended[container] = self._daemon.state(container) or {}
            ended = self._ended[container]
        code = ended.get("ExitCode")
        state = state_of(status, code)
        out_of_memory = bool(ended.get("OOMKilled")) and code == 137
        return Allocation(
            id=f"{task.replace('/', '-')}-{self._starts[task] - 1}",
            task=task,
            state=state,
            placed_on=self._agents[task]["name"],
            exit_code=code,
            reason=self._reason(task, state, status, code) if not out_of_memory else "its container ran out of memory",
            out_of_memory=out_of_memory,
        )

    def _reason(self, task: str, state: AllocationState, status: str | None, code: int | None) -> str | None:
        if code in CANNOT_RUN:
            said = read_from(self._agents[task]["log"], 0)[0].decode(errors="replace").strip()
            return said.rpartition("\n")[2].removeprefix("yurt: ") or None
        if state is not AllocationState.LOST:
            return None
        if status is None:
            return "its container was removed"
        return f"its container ended with exit code {code}" if code is not None else f"its container is {status}"


def _make_folders(agent: Mapping[str, Any]) -> None:
    """What the container finds in its task's folder: the job's files, a home, a place for the model."""
    folder = Path(agent["folder"])
    try:
        for part in ("model", "home"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        mirror(Path(agent["files"]), folder / "work")
    except OSError as error:
        raise EngineError(f"the folder of {agent['task']} could not be made: {error}") from error


def _lost(allocation: Allocation, reason: str) -> Allocation:
    if allocation.state is AllocationState.ENDED:
        return allocation
    return replace(allocation, state=AllocationState.LOST, reason=reason)


def _each(do: Callable[[str], None], items: Iterable[str]) -> None:
    """Do it for all, several at the same time; an error is raised once all that have begun are through."""
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(do, items))
