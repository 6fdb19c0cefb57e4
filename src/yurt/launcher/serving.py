"""Who serves a run: this machine's host, or one beside a run that lives on a cluster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pydantic import BaseModel

from yurt.contract.spec import RunSpec
from yurt.engines import registry
from yurt.engines.base import Engine, StoreAt
from yurt.launcher.host import Host
from yurt.launcher.inside_host import InsideHost
from yurt.launcher.records import RunFolder, Snapshot
from yurt.launcher.remote_host import RemoteHost


class RunHost(Protocol):
    """What the command line and the API know of either."""

    folder: RunFolder
    spec: RunSpec
    engine: Engine
    notes: list[str]
    snapshot: Snapshot

    def start(self) -> None:
        """Submit the run. Raises YurtError; nothing is left behind then."""

    def stop(self, *, at_once: bool, by: str) -> None:
        """Ask for the end of the run; may be called from a signal handler."""

    def serve(self, on_look: Callable[[Snapshot], None]) -> Snapshot:
        """Until the run has ended and nothing is left of it."""

    def logs(self, task: str, offset: int) -> tuple[bytes, int]:
        """What a task has written from byte `offset` on, and the next offset."""


def beside(folder: RunFolder) -> RemoteHost:
    """Who takes on a run that lives on a cluster and has nobody beside it."""
    engine = registry.load(folder.record()["engine"])
    kind = InsideHost if engine.capabilities.store is StoreAt.AGENT else RemoteHost
    return kind(folder, folder.spec(), engine(), engine.options())


def make_host(folder: RunFolder, spec: RunSpec, engine: Engine, options: BaseModel) -> RunHost:
    """The host for a run on this engine."""
    if engine.capabilities.store is StoreAt.CONSUL:
        return RemoteHost(folder, spec, engine, options)
    if engine.capabilities.store is StoreAt.AGENT:
        return InsideHost(folder, spec, engine, options)
    return Host(folder, spec, engine, options)
