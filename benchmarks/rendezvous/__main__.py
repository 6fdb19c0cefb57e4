"""How long a gang takes to find itself: ``python -m benchmarks.rendezvous [--agents 10 100 1000] [--peer-check]``.

Real agents (several a process) on a real Consul, no TensorFlow. Measured is the time from the moment the last agent
has joined until every agent has the cluster spec; with --peer-check until every agent has met its peers as well.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter

from tests.conftest import free_ports
from yurt.cluster.places import Install, find
from yurt.contract.spec import RunSpec, TaskSpec
from yurt.errors import StoreError
from yurt.kv.client import Store
from yurt.kv.run_store import RunStore

PROCESSES = 8
OBSERVERS = 2


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--agents", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--peer-check", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        http, server, lan, wan = free_ports(4)
        command = [find(Install.CONSUL), "agent", "-dev", "-bind=127.0.0.1", f"-http-port={http}"]
        command += [f"-server-port={server}", f"-serf-lan-port={lan}", f"-serf-wan-port={wan}", "-log-level=err"]
        command += ["-dns-port=-1", "-grpc-port=-1", "-hcl", "limits { http_max_conns_per_client = 10000 }"]
        with open(f"{folder}/log", "wb") as log:
            consul = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            address = f"http://127.0.0.1:{http}"
            wait_for(address)
            for count in arguments.agents:
                for _ in range(arguments.repeat):
                    print(once(address, count, peer_check=arguments.peer_check), flush=True)
        finally:
            consul.kill()
            consul.wait()


def wait_for(address: str) -> None:
    end = time.monotonic() + 30
    while True:
        try:
            with Store(address) as store:
                if store.leader():
                    return
        except StoreError:
            pass
        assert time.monotonic() < end, "Consul did not come up"
        time.sleep(0.05)


def once(address: str, count: int, *, peer_check: bool) -> str:
    run = RunSpec(
        run_id=f"bench-{uuid.uuid4().hex[:6]}", job_name="bench", strategy="multi-worker-mirrored",
        tasks=tuple(TaskSpec("worker", index, ("true",)) for index in range(count)), restart="never", max_restarts=0,
        success="chief", start_deadline_s=600.0, deadline_s=None, grace_s=1.0, output=None, saves_to=None,
        submitted_at=time.time(),
    )  # fmt: skip
    store = RunStore(Store(address), run)
    store.create()
    names = [task.name for task in run.tasks]
    processes = []
    for number in range(min(PROCESSES, count)):
        process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.rendezvous.agents"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        order = {
            "run": run.to_json(), "store": address, "tasks": names[number::PROCESSES], "peer_check": peer_check,
            "observers": names[:OBSERVERS],
        }  # fmt: skip
        process.stdin.write(json.dumps(order))
        process.stdin.close()
        processes.append(process)
    answers = [json.loads(process.stdout.readline()) for process in processes]
    for process in processes:
        process.wait()
    store.store.delete_prefix("yurt/")
    moments = [moment for answer in answers for moment in answer["moments"]]
    last = max(moment["joined"] for moment in moments)
    reached = "running" if peer_check else "cluster"
    times = sorted(moment[reached] - last for moment in moments)
    calls = sum((Counter(answer["calls"]) for answer in answers), Counter())
    told = ", ".join(f"{name} {number}" for name, number in sorted(calls.items()))
    start = last - min(moment["joined"] for moment in moments)
    what = "met their peers" if peer_check else "the cluster spec"
    median = statistics.median(times)
    return (
        f"{count} agents: all have {what} {times[-1]:.2f} s after the last arrival (median {median:.2f} s;"
        f" arrivals took {start:.1f} s); {sum(calls.values())} requests: {told}"
    )


if __name__ == "__main__":
    main()
