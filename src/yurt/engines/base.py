"""The boundary that every engine stands on.

An engine is a class that satisfies `Engine`; there is no base class. Someone outside registers one by the entry point
group ``yurt.engines``::

    [project.entry-points."yurt.engines"]
    slurm = "yurt_slurm:SlurmEngine"

What users notice (TF_CONFIG, peer check, restarts of the gang, verdict, publish) lives in the agent and is the same
on every engine. An engine only brings agents to life, says which are still there, gives their output and ends them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

from pydantic import BaseModel

from yurt.contract.spec import RunSpec
from yurt.kv.run_index import Entry
from yurt.kv.run_store import RunStore


class StoreAt(Enum):
    """Where the run's key-value store is."""

    LAUNCHER = "launcher"  # embedded in the launcher: the run ends with it
    CONSUL = "consul"
    AGENT = "agent"  # embedded in an agent of the run's own on the cluster: its keeper


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What an engine can do, as data: callers ask these, never the engine's name."""

    store: StoreAt
    #: A lost allocation is brought back by the engine itself, without `Engine.bring_back`.
    brings_back: bool
    #: Tasks run on several machines.
    machines: bool
    #: Tasks run in the job's `image`.
    images: bool
    #: A task that uses more than its `memory` is ended; otherwise the number only places it.
    holds_memory: bool
    #: A task gets no more than its `cpus`.
    holds_cpus: bool
    #: GPUs are given to tasks by number.
    gpus: bool
    #: The deciding task's agent publishes the model, beside itself; otherwise the launcher does, from the run's folder.
    agent_publishes: bool = True


class AllocationState(Enum):
    """What an engine says of the agent of a task."""

    PENDING = "pending"  # asked for, not running yet
    RUNNING = "running"
    ENDED = "ended"  # its agent has exited; whether the task has finished is in the store alone
    LOST = "lost"  # killed, or its machine is gone


@dataclass(frozen=True, slots=True)
class Allocation:
    """One agent as the engine sees it. `reason` is the engine's own word where something is wrong."""

    id: str
    task: str
    state: AllocationState
    placed_on: str = ""
    exit_code: int | None = None
    reason: str | None = None
    #: The engine knows that it was ended for using more memory than it may.
    out_of_memory: bool = False


@dataclass(frozen=True, slots=True)
class Place:
    """Where a run lives on the launcher's side: its folder, the agent's zipapp, its store and token.

    `linked` are the folders outside of it that its files link into: large files are linked, not copied.
    """

    folder: Path
    agent: Path
    store: str
    token: str
    linked: tuple[Path, ...] = ()


@runtime_checkable
class Engine(Protocol):
    """What every engine does. Errors of the engine are `yurt.errors.EngineError`."""

    name: ClassVar[str]
    capabilities: ClassVar[Capabilities]
    #: What may stand under ``engines: <name>:`` in a job file.
    options: ClassVar[type[BaseModel]]

    def facts(self, options: BaseModel) -> Any:
        """What rendering needs to know of the engine's ground (its CPUs, its nodes): read, never guessed."""

    def prepare(self, run: RunSpec, options: BaseModel) -> str:
        """Make what the run needs before its store opens; the address of this machine at which the store listens.

        No wider than its agents need: ``127.0.0.1`` where all are processes of this machine. Asked only where the
        store is in the launcher; `cancel` takes away what was made.
        """

    def render(self, run: RunSpec, place: Place, options: BaseModel, facts: Any) -> Mapping[str, Any]:
        """The engine's native request, as JSON values. Pure: the same arguments, the same request."""

    def submit(self, request: Mapping[str, Any]) -> None:
        """Send a rendered request."""

    def describe(self) -> list[Allocation]:
        """The allocations of all tasks of the submitted run, from one read."""

    def bring_back(self, task: str) -> None:
        """Start a new agent for a task whose allocation is gone (only where not `Capabilities.brings_back`)."""

    def logs(self, task: str, offset: int) -> tuple[bytes, int]:
        """What a task and its agent have written from byte `offset` on, and the next offset. Empty: nothing new."""

    def cancel(self) -> None:
        """End whatever is left of the run at once and wait until it is gone."""


@runtime_checkable
class Looks(Protocol):
    """An engine that can look at the place of its tasks before a run, where that is not simply this machine."""

    def look(self, run: RunSpec, agent: Mapping[str, Any]) -> Mapping[str, Any]:
        """What the task's preflight finds in its place, as JSON values; `agent` is one of a request's ``agents``."""


@runtime_checkable
class Adopts(Protocol):
    """An engine whose runs need no launcher, so that another process can take one on."""

    #: What `Engine.submit` found out and a person should know.
    notes: list[str]
    #: `Engine.submit` calls it as soon as `handle` tells of the run, before there is anything to be found again, and
    #: once more where there is more to tell; what it raises ends the submission.
    on_handle: Callable[[], None]

    def handle(self) -> Mapping[str, Any]:
        """What another process needs for that, as JSON values, as of now."""

    def adopt(self, handle: Mapping[str, Any]) -> None:
        """Take on the run that `handle` tells of."""


@runtime_checkable
class Keeps(Protocol):
    """An engine that has a run's store in the cluster itself, beside the tasks (`StoreAt.AGENT`)."""

    def store(self) -> tuple[str, str]:
        """The store's address on this machine, and the run's token for it; nobody may answer there yet."""

    def look_after(self, runs: RunStore) -> None:
        """Do for the run what its keeper may not; called again and again. Raises EngineError, StoreError."""

    def waiting(self) -> Mapping[str, tuple[str, bool]]:
        """Why what has not started has not, by task (and ``keeper``), as of the last `describe`.

        With whether waiting cannot help.
        """

    def let_go(self) -> None:
        """Look after the run no longer, and leave all that it has in the cluster."""

    def last_words(self) -> Mapping[str, Any] | None:
        """How the run ended, as its keeper left it when it went; None while it has not, or where nothing is left.

        ``verdict`` is a `yurt.contract.state.Verdict` as JSON, or None where the keeper went without one.
        """

    def gone(self) -> bool:
        """Whether somebody has removed the run from the cluster."""

    def take_over(self, run_id: str) -> RunSpec:
        """Find a run that another machine has submitted, and be its engine from now on; `cancel` then only lets go.

        Raises RunNotFound.
        """

    def runs(self) -> list[Entry]:
        """The runs in the cluster, the newest first."""

    def forget(self, run_id: str) -> None:
        """Remove all that the cluster has of a run, whoever submitted it. Raises EngineError."""


@runtime_checkable
class Reminds(Protocol):
    """An engine whose scheduler may forget what was lost."""

    def remind(self, lost: Sequence[Allocation]) -> None:
        """See that the tasks of these, which the last `describe` gave, will come again; called again and again.

        Raises EngineError.
        """


@runtime_checkable
class Fetches(Protocol):
    """An engine that keeps for a while what an ended task has written in its place, and gives it away."""

    def fetch_model(self, task: str, saves_to: str | None, folder: Path) -> None:
        """Copy the model of a task of the run that was adopted to `folder`, whole or not at all.

        Raises EngineError, which says where the model is, or that it is gone.
        """


@runtime_checkable
class Cleans(Protocol):
    """An engine on which a launcher that was killed leaves something behind."""

    def leftovers(self, *, remove: bool) -> list[str]:
        """Names of what dead runs left, after its removal if `remove`."""


def chunks(engine: Engine, task: str, offset: int = 0) -> Iterator[bytes]:
    """All that a task has written until now, in pieces."""
    while True:
        data, offset = engine.logs(task, offset)
        if not data:
            return
        yield data
