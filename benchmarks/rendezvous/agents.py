"""Some agents of one run in one process: the real supervisors, without anything to train.

Started by ``python -m benchmarks.rendezvous``. Reads its order from standard input; prints one line of JSON a moment.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import threading
import time
from collections import Counter

from yurt.agent import supervisor
from yurt.agent.output import Output
from yurt.contract.config import AgentConfig
from yurt.contract.spec import RunSpec
from yurt.contract.state import RUNNING
from yurt.kv.client import Store
from yurt.kv.run_store import RunStore

CALLS: Counter[str] = Counter()


class CountingStore(Store):
    """Counts its requests."""

    def _call(self, method, path, *arguments, **options):
        CALLS[f"{method} {'members' if 'members' in path else 'state' if path.endswith('state') else 'other'}"] += 1
        return super()._call(method, path, *arguments, **options)


class Seeing(supervisor.Supervisor):
    """Notes when it joined, when it saw the cluster spec, and when it saw the run running; starts no process."""

    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.moments: dict[str, float] = {}
        self.meets_peers = True

    def _see(self, state):
        if state.cluster is not None:
            self.moments.setdefault("cluster", time.time())
        if state.phase == RUNNING:
            self.moments.setdefault("running", time.time())
        super()._see(state)

    def _change_generation(self, state):
        super()._change_generation(state)
        if self._member is not None:
            self.moments.setdefault("joined", time.time())

    def _check(self, state):
        if self.meets_peers:  # on machines of their own they would not take each other's time
            super()._check(state)

    def _work(self, state):
        pass


def main() -> None:
    order = json.load(sys.stdin)
    run = RunSpec.from_json(order["run"])
    signal.signal = lambda *_: None  # supervisors here are threads, and only a main thread may
    folder = tempfile.mkdtemp()
    null = os.open(os.devnull, os.O_WRONLY)
    agents = []
    for task in order["tasks"]:
        config = AgentConfig(
            run=run, task=task, allocation=f"{task}.0", store=order["store"], token="", host="127.0.0.1",
            placed_on="here", work_dir=folder, model_dir=folder, checkpoint_dir=folder, state_dir=folder, publisher=(),
            beat_s=max(2.0, len(run.tasks) / 50), peer_check_s=60.0, observe=task in order["observers"],
        )  # fmt: skip
        agents.append(Seeing(config, RunStore(CountingStore(order["store"], timeout_s=30), run), Output(fd=null)))
    for agent in agents:
        agent.meets_peers = order["peer_check"]
        threading.Thread(target=agent.run, daemon=True).start()
    wanted = "running" if order["peer_check"] else "cluster"
    while not all(wanted in agent.moments for agent in agents):
        time.sleep(0.02)
    print(json.dumps({"moments": [agent.moments for agent in agents], "calls": CALLS}), flush=True)
    sys.stdin.close()
    os._exit(0)


if __name__ == "__main__":
    main()
