"""What a run asks of the API server while it trains: the requests in the API server's own log, by who asks.

A request is logged when it ends, a watch too (the keeper's after two minutes, the launcher's after five), so those
that stay open are counted once in a long while: the launcher's connections are counted as well.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from urllib.parse import urlsplit

import urllib3

from benchmarks.kubernetes.gangs import Bench, ByYurt
from tests.support.runs import wait_until
from yurt.engines.kubernetes.session import open_session

#: The launcher's own, and those by which the client of Kubernetes forwards a port.
LAUNCHER, FORWARDS, KEEPER = "launcher", "launcher, forwarded ports", "keeper"
_WHO = {"yurt": LAUNCHER, "yurt-keeper": KEEPER}
_ROW = re.compile(
    r'"HTTP" verb="(?P<verb>\w+)" URI="(?P<path>[^"?]*)[^"]*" .*userAgent="(?P<agent>[^"]*)".* srcIP="(?P<from>[^"]*)"'
)
SETTLE_S = 10.0
_ESTABLISHED = "01"
WAYS_IN_WORDS = {"none": "Indexed Job", "tfjob": "TFJob"}


class RequestLog:
    """The API server's log of requests in one namespace, while it is told to write one."""

    def __init__(self, bench: Bench) -> None:
        self._file = bench.cluster.own.folder / "control/log/api-server"
        self._namespace = f"/namespaces/{bench.namespace}/"
        self._ours: set[str] = set()  # connections on which something was asked about this namespace

    def place(self) -> int:
        return self._file.stat().st_size

    def since(self, place: int) -> dict[str, dict[str, int]]:
        """By who asks, how often each verb and kind of object."""
        with self._file.open(errors="replace") as file:
            file.seek(place)
            rows = list(filter(None, map(_ROW.search, file)))
        self._ours |= {row["from"] for row in rows if self._namespace in row["path"]}
        found: dict[str, Counter[str]] = {}
        for row in rows:
            _, here, rest = row["path"].partition(self._namespace)
            if not here and (
                "/namespaces/" in row["path"] or row["agent"] not in _WHO or row["from"] not in self._ours
            ):
                continue  # somebody else's
            what = f"{row['verb']} {'/'.join(rest.split('/')[::2]) or row['path']}"
            found.setdefault(_who(row["agent"], what), Counter())[what] += 1
        return {who: dict(what) for who, what in found.items()}


def _who(agent: str, what: str) -> str:
    if "portforward" in what:
        return FORWARDS
    return _WHO.get(agent, agent.partition("/")[0])


@contextmanager
def logged() -> Iterator[None]:
    """The API server logs each request while this lasts (its verbosity 3)."""
    _verbosity(3)
    try:
        yield
    finally:
        _verbosity(0)


def _verbosity(number: int) -> None:
    session = open_session()
    pool: urllib3.PoolManager = session._api.rest_client.pool_manager  # noqa: SLF001 - no object, so no request of Yurt's
    answer = pool.request("PUT", f"{session.server}/debug/flags/v", body=str(number).encode())
    if answer.status != 200:
        raise RuntimeError(f"the API server does not take a verbosity: {answer.data!r}")


@dataclass(frozen=True)
class Asked:
    """Of one run: `starting` until all trained (`trains_after_s`), `training` in `watched_s` seconds after that."""

    way: str
    tasks: int
    joined_after_s: float
    trains_after_s: float
    watched_s: float
    starting: Mapping[str, Mapping[str, int]]
    training: Mapping[str, Mapping[str, int]]
    connections: int

    def json(self) -> Mapping[str, object]:
        return asdict(self)

    def a_minute(self, who: str) -> float:
        return sum(self.training.get(who, {}).values()) * 60 / self.watched_s


def of_a_run(bench: Bench, way: str, tasks: int, watched_s: float) -> Asked:
    """Start it, let all come, count for so long."""
    small = {"requests": {"cpu": "1m", "memory": "8Mi"}, "limits": {"memory": "128Mi"}}
    log, names = RequestLog(bench), [f"worker/{index}" for index in range(tasks)]
    place = log.place()
    with bench.gang(way, tasks, small) as gang:
        assert isinstance(gang, ByYurt)
        trains = max(gang.line(name) for name in names)
        gang.all_train(0, names)
        said = wait_until(lambda: _joined(bench, gang), 20, "the keeper's word")
        time.sleep(SETTLE_S)
        starting = log.since(place)
        place, began = log.place(), time.monotonic()
        time.sleep(watched_s)
        training, watched = log.since(place), time.monotonic() - began
        connections = _connections(gang.run.process.pid)
    return Asked(way, tasks, said - gang.began, trains - gang.began, watched, starting, training, connections)


def _connections(pid: int) -> int:
    """Those of a process to the API server."""
    port = f":{urlsplit(open_session().server).port:04X}"
    rows = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    there = {f"socket:[{row[9]}]" for row in rows if row[2].endswith(port) and row[3] == _ESTABLISHED}
    found = 0
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found += os.readlink(entry) in there
    return found


def _joined(bench: Bench, gang: ByYurt) -> float | None:
    log = bench.keeper_log(gang.run.run_id)
    return log.get("yurt: generation 0: checking") or log.get("yurt: generation 0: running")


def line(asked: Asked) -> str:
    counts = ", ".join(f"{who} {asked.a_minute(who):.1f} ({what})" for who, what in asked.training.items())
    whole = {who: sum(what.values()) for who, what in asked.starting.items()}
    return (
        f"{asked.way:6} {asked.tasks} tasks: joined {asked.joined_after_s:.1f}, all train {asked.trains_after_s:.1f}, "
        f"requests until then {whole}, connections {asked.connections}, a minute while training: {counts or 'none'}"
    )


COLUMNS = (
    "all have joined after",
    "all have said their first line after",
    "requests of the launcher until then",
    "its connections then",
    "its requests a minute then",
    "the keeper's",
)


def table(found: Sequence[Asked]) -> str:
    """A row a run."""
    rows = [
        f"| tasks | way | {' | '.join(COLUMNS)} |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for each in found:
        own, forwards = (sum(each.starting.get(who, {}).values()) for who in (LAUNCHER, FORWARDS))
        rate = each.a_minute(LAUNCHER) + each.a_minute(FORWARDS)
        rows.append(
            f"| {each.tasks} | {WAYS_IN_WORDS[each.way]} | {each.joined_after_s:.1f} s | {each.trains_after_s:.1f} s "
            f"| {own + forwards} | {each.connections} | **{rate:.1f}** | **{each.a_minute(KEEPER):.1f}** |"
        )
    return "\n".join(rows)
