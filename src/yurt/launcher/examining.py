"""What is cheaply known of the ground of the engines other than Kubernetes: whether they answer, and what they have."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from yurt.engines import registry
from yurt.engines.finding import Finding, good, problem, warning
from yurt.errors import EngineError, StoreError

_WHY: Final = "no run can start on it"


def examine(engine: str) -> Iterator[Finding]:
    """The findings about an engine of this name. Raises UsageError for a name that nobody has."""
    known: Mapping[str, Callable[[], Iterator[Finding]]] = {"local": _local, "docker": _docker, "nomad": _nomad}
    try:
        cls = registry.load(engine)
        if engine in known:
            yield from known[engine]()
            return
        cls().facts(cls.options())
        yield good(engine, f"the engine {engine} answers; Yurt knows no more to look at there")
    except EngineError as error:
        yield problem(engine, str(error), _WHY, error.hint or "")


def _local() -> Iterator[Finding]:
    from yurt.engines.local import machine

    found = machine.look()
    gpus = f"{len(found.gpus)} GPUs" if found.gpus else "no GPUs"
    yield good("local", f"this machine ({found.name}) has {len(found.cpus)} CPUs for tasks, and {gpus}")


def _docker() -> Iterator[Finding]:
    from yurt.engines.docker import ground
    from yurt.engines.docker.client import Daemon

    daemon = Daemon()
    info = daemon.info()
    found = ground.look(info)
    gpus = f"{len(found.gpus)} GPUs" if found.gpus else "no GPUs"
    version = info.get("ServerVersion", "of an unknown version")
    yield good("docker", f"Docker {version} answers at {daemon.address}: {len(found.cpus)} CPUs for tasks, and {gpus}")


def _nomad() -> Iterator[Finding]:
    from yurt.engines.nomad.engine import NomadEngine

    engine = NomadEngine()
    cluster = engine.facts(engine.options())
    if cluster.unknown:
        yield problem("nomad", cluster.unknown, _WHY, "set NOMAD_ADDR, or raise a cluster here: yurt cluster dev")
    else:
        usable = [each for each in cluster.nodes if each.usable]
        told = f"Nomad {cluster.nomad} answers: {len(usable)} of {len(cluster.nodes)} nodes take tasks"
        if usable:
            yield good("nomad", told)
        else:
            yield problem("nomad", told, "every task waits", "nomad node status   # what is wrong with them")
        gpus = sum(each.has("gpu") for each in usable)
        if gpus:
            yield good("gpus", f"{gpus} GPUs on them")
        if away := [each.name for each in cluster.nodes if not each.usable]:
            yield warning("nodes", f"{', '.join(away)} take no tasks", "less room for runs", "nomad node status")
    yield from _consul()


def _consul() -> Iterator[Finding]:
    from yurt.launcher.consul import explained, open_store

    try:
        with open_store() as store:
            store.get("yurt/doctor")
        yield good("consul", "Consul answers; runs keep their state in it")
    except StoreError as error:
        told = explained(error)
        yield problem("consul", str(told), _WHY, told.hint or "")
