"""Nomad beside this machine: ``python -m benchmarks.nomad [--markdown docs/performance.md]``, a quarter of an hour.

Two workers that train a tiny model, by `yurt run`, on a real Nomad with three nodes and a real Consul, all of them
processes of this machine. Needs root, `nomad` and `consul` on PATH; for the driver docker dockerd as well.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path

from benchmarks.launch import measure
from benchmarks.nomad import failing, starting
from benchmarks.nomad.gangs import LOCAL, Bench
from tests.support import docker_image
from tests.support.cluster import environment_for_exec
from tests.support.docker_daemon import some_daemon
from yurt.cluster.dev import DevCluster

ENGINES = (LOCAL, "raw_exec", "exec", "docker")
NODES = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="starts by each engine, and failures of each kind")
    parser.add_argument("--nodes-lost", type=int, default=3, help="the same for a lost node, which takes half a minute")
    parser.add_argument("--engines", nargs="+", default=list(ENGINES), choices=ENGINES, help="whose starts to measure")
    parser.add_argument("--only", choices=("starting", "failing"), help="one of the two")
    parser.add_argument("--json", type=Path, help="write every run here")
    parser.add_argument("--markdown", type=Path, help="write the tables into this file, between their marks")
    options = parser.parse_args()
    facts, tables, runs = measure.machine(), {}, {}
    with ExitStack() as stack:
        path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="yurt-nomad-")))
        bench = _raised(stack, path, docker="docker" in options.engines)
        if options.only != "failing":
            started = _starting(bench, options.engines, options.runs)
            runs["starting"] = started
            tables["nomad-start"] = f"{starting.table(started)}\n\nMedians of {options.runs} starts each, in turns; "
        if options.only != "starting":
            failed = _failing(bench, options.runs, options.nodes_lost)
            runs["failing"] = [[*what, *map(asdict, seen)] for what, seen in failed.items()]
            counts = f"of {options.runs}, from the lost node on of {options.nodes_lost}"
            tables["nomad-failures"] = f"{failing.table(failed)}\n\nMedian (least to most) {counts}; "
    if options.json:
        options.json.write_text(json.dumps({"machine": facts, **runs}, indent=1) + "\n")
    for name, text in tables.items():
        whole = f"{text}{facts['cpus']} CPUs ({facts['cpu']}), load before it {facts['load_before']}."
        print(whole)
        if options.markdown:
            measure.write_between(options.markdown, name, whole)
    return 0


def _raised(stack: ExitStack, path: Path, *, docker: bool) -> Bench:
    """The cluster, until the stack is left."""
    image = ""
    if docker:
        daemon = stack.enter_context(some_daemon())
        os.environ |= daemon.environment  # Nomad's driver heeds it too
        image = docker_image.image(daemon.environment)
    path.chmod(0o755)
    volumes = {"marks": str(path), "packages": sysconfig.get_paths()["purelib"]}
    if (own := environment_for_exec(path / "python", docker_image.PACKAGES)) is not None:
        volumes["tf"] = str(own)
    cluster = stack.enter_context(DevCluster(clients=NODES, volumes=volumes))
    return Bench(path, cluster, image)


def _starting(bench: Bench, engines: Sequence[str], runs: int) -> dict[str, list[dict[str, float]]]:
    """The engines take turns; each round starts with another one, and one round comes first that is not counted."""
    found: dict[str, list[dict[str, float]]] = {engine: [] for engine in engines}
    for number in range(runs + 1):
        first = number % len(engines)
        for engine in (*engines[first:], *engines[:first]):
            run = starting.once(bench, engine)
            print(number or "warm", starting.line(engine, run), flush=True)
            if number:
                found[engine].append(run)
    return found


def _failing(bench: Bench, runs: int, nodes_lost: int) -> dict[tuple[str, str], list[failing.Seen]]:
    found: dict[tuple[str, str], list[failing.Seen]] = {}
    quick = [name for name in failing.SURVIVED if name not in failing.SLOW]
    for engine, names, repeat in (
        (LOCAL, failing.ON_THIS_MACHINE, runs),
        ("raw_exec", quick, runs),
        # Nomad 1.0.18 replaces a task's node once, if the lost one comes back: each in a run of its own
        *[("raw_exec", failing.SLOW, 1)] * nodes_lost,
    ):
        for name, seen in failing.survived(bench, engine, names, repeat, lambda text: print(text, flush=True)).items():
            found.setdefault((name, engine), []).extend(seen)
    for name, measured in failing.ENDED.items():
        found[name, "raw_exec"] = [measured(bench, "raw_exec") for _ in range(nodes_lost)]
        print(name, found[name, "raw_exec"], flush=True)
    return found


if __name__ == "__main__":
    sys.exit(main())
