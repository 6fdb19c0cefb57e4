"""Kubernetes beside this machine: ``python -m benchmarks.kubernetes [--markdown docs/performance.md]``, twenty minutes.

Gangs by `yurt run`, here and on a real Kubernetes with two nodes and the training operator, all of them processes of
this machine (the rig of tests/support/kubernetes), and the same TFJob by `kubectl apply`. Needs root, and what the rig
needs. ``--rig NAME`` takes one that is up already, and leaves it up.
"""

from __future__ import annotations

import argparse
import json
import os
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Protocol

from benchmarks.kubernetes import asking, losing, starting, stepping
from benchmarks.kubernetes.gangs import NONE, TFJOB, WAYS, Bench
from benchmarks.launch import measure
from tests.support.kubernetes.rig import Rig
from tests.support.kubernetes_cluster import KubernetesCluster

PARTS = ("starting", "stepping", "losing", "asking")
#: Seconds that a run's requests are counted: longer than one of the keeper's watches.
WATCHED_S = 125.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rig", help="a rig that is up already, with the training operator")
    parser.add_argument("--runs", type=int, default=5, help="starts of each way")
    parser.add_argument("--losses", type=int, default=3, help="losses of each kind, and of each way")
    # Of 40 and more the peer check fails here: pods of one node know each other by the kernel's table of neighbours,
    # which all nodes of a rig share, and which has room for 1,024 (net.ipv4.neigh.default.gc_thresh3).
    parser.add_argument("--gangs", type=int, nargs="+", default=[2, 25], help="tasks of the runs that are counted")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), help="some of the parts")
    parser.add_argument("--json", type=Path, help="write every run here")
    parser.add_argument("--markdown", type=Path, help="write the tables into this file, between their marks")
    options = parser.parse_args()
    with _bench(options.rig) as bench:
        for part in options.only:
            load = os.getloadavg()[0]
            text, runs = _measured(part, bench, options)
            facts = measure.machine()
            loads = f"load before it {load:.1f}, after it {os.getloadavg()[0]:.1f}"
            text += f"; {facts['cpus']} CPUs ({facts['cpu']}), {loads}."
            print(text, flush=True)
            if options.json:
                kept = json.loads(options.json.read_text()) if options.json.exists() else {}
                options.json.write_text(json.dumps({**kept, part: runs, "machine": facts}, indent=1) + "\n")
            if options.markdown:
                measure.write_between(options.markdown, f"kubernetes-{part}", text)
    return 0


@contextmanager
def _bench(name: str | None) -> Iterator[Bench]:
    """A namespace of its own with the keepers' account."""
    rig = Rig(name or f"bench-{os.getpid()}")
    if name is None:
        rig.up(2, owner=os.getpid())
        rig.install_operator()
    rig.check_up()
    os.environ["KUBECONFIG"] = str(rig.kubeconfig)
    cluster, namespace = KubernetesCluster(rig.kubeconfig, rig), f"yurt-bench-{secrets.token_hex(3)}"
    with tempfile.TemporaryDirectory(prefix="yurt-kubernetes-") as path:
        try:
            bench = Bench(Path(path), cluster, namespace)
            done = bench.folder.yurt("kubernetes", "prepare", "-n", namespace, "--operator", "none", "--yes")
            if done.returncode:
                raise SystemExit(done.stdout + done.stderr)
            yield bench
        finally:
            cluster.kubectl("delete", "namespace", namespace, "--ignore-not-found", "--wait=false")
            if name is None:
                rig.down()


def _measured(part: str, bench: Bench, options: argparse.Namespace) -> tuple[str, Any]:
    """The table with the beginning of its foot, and every run."""
    match part:
        case "starting":
            started = _in_turns(bench, starting, options.runs)
            return f"{starting.table(started)}\n\nMedians of {options.runs} starts each, in turns", started
        case "stepping":
            stepped = _in_turns(bench, stepping, options.runs)
            return f"{stepping.table(stepped)}\n\nMedians of {options.runs} starts each, in turns", stepped
        case "losing":
            restarts = _losing(bench, losing.restarted, options.losses)
            ends = _losing(bench, losing.ended, options.losses)
            kept = [[[*what, *map(asdict, seen)] for what, seen in each.items()] for each in (restarts, ends)]
            return f"{losing.table(restarts, ends)}\n\nMedian (least to most) of {options.losses}", kept
        case _:
            with asking.logged():
                asked = []
                for tasks in options.gangs:
                    for way in (NONE, TFJOB):
                        asked.append(asking.of_a_run(bench, way, tasks, WATCHED_S))
                        print(asking.line(asked[-1]), flush=True)
            foot = f"One run each, counted for {WATCHED_S:.0f} s from 10 s after all had begun"
            return f"{asking.table(asked)}\n\n{foot}", [each.json() for each in asked]


class _Starts(Protocol):
    """A module that measures one start."""

    def once(self, bench: Bench, way: str) -> dict[str, float]: ...

    def line(self, way: str, run: Mapping[str, float]) -> str: ...


def _in_turns(bench: Bench, starts: _Starts, runs: int) -> dict[str, list[dict[str, float]]]:
    """The ways take turns; each round starts with another one, and one round comes first that is not counted."""
    found: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for number in range(runs + 1):
        first = number % len(WAYS)
        for way in (*WAYS[first:], *WAYS[:first]):
            run = starts.once(bench, way)
            print(number or "warm", starts.line(way, run), flush=True)
            if number:
                found[way].append(run)
    return found


def _losing(
    bench: Bench, lost: Callable[[Bench, str, str], losing.Seen], repeat: int
) -> dict[tuple[str, str], list[losing.Seen]]:
    found: dict[tuple[str, str], list[losing.Seen]] = {
        (name, way): [] for name in losing.LOSSES for way in (NONE, TFJOB)
    }
    for _ in range(repeat):
        for (name, way), seen in found.items():
            one = lost(bench, way, name)
            print(f"{way:6} {name}: known after {one.noticed_s:.2f}, then {one.after_s:.2f} ({one.word})", flush=True)
            seen.append(one)
    return found


if __name__ == "__main__":
    sys.exit(main())
