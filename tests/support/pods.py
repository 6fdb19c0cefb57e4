"""Pods without a cluster: the first program of a container, in real processes, each with a root folder of its own."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.contract.test_values import SPEC
from yurt.contract.spec import RunSpec, TaskSpec
from yurt.engines.base import Place
from yurt.engines.kubernetes.options import KubernetesOptions
from yurt.engines.kubernetes.order import order
from yurt.engines.kubernetes.pod import start
from yurt.engines.kubernetes.room import ROOM
from yurt.engines.travel.payload import payload
from yurt.kv.client import Store
from yurt.kv.run_store import RunStore
from yurt.launcher.agent_zip import agent_zip

TOKEN = "of-the-run"
#: Waits for `enough` among the checkpoints, or for a file of its own that says how to end.
SCRIPT = """\
import os, signal, sys, time
place = os.environ["YURT_CHECKPOINT_DIR"]
name = os.environ["YURT_ROLE"] + "-" + os.environ["YURT_INDEX"]
print("begins", name, "generation", os.environ["YURT_GENERATION"], flush=True)
while not os.path.exists(place + "/enough"):
    if os.path.exists(place + "/" + name):
        with open(place + "/" + name) as file:
            code = int(file.read())
        os.remove(place + "/" + name)
        sys.exit(code)
    time.sleep(0.05)
"""


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


class Pods:
    """One run's; what is written here is what an engine renders."""

    def __init__(self, folder: Path, *, way: str = "none", workers: int = 2, **changes: Any) -> None:
        self.folder = folder
        self.port = free_port()
        self.checkpoints = folder / "checkpoints"
        self.checkpoints.mkdir()
        work = folder / "files"
        work.mkdir()
        (work / "train.py").write_text(SCRIPT)
        tasks = tuple(TaskSpec("worker", index, (sys.executable, "train.py")) for index in range(workers))
        values: dict[str, Any] = {
            "run_id": f"pods-{uuid.uuid4().hex[:6]}",
            "strategy": "multi-worker-mirrored",
            "tasks": tasks,
            "restart": "on-failure",
            "max_restarts": 3,
            "start_deadline_s": 30.0,
            "grace_s": 1.0,
            "output": None,
            "submitted_at": time.time(),
        }
        self.run: RunSpec = replace(SPEC, **{**values, **changes})
        self.address = f"http://127.0.0.1:{self.port}"
        tfjob = None if way == "none" else {"metadata": {"name": self.run.run_id}}
        place = Place(folder, agent_zip(), self.address, TOKEN)
        self.order = order(self.run, place, KubernetesOptions(), namespace="here", tfjob=tfjob, cleans=False)
        # What is otherwise here: one machine, where nothing has names, and nobody waits for long.
        self.order["config"].update(store=self.address, port=None, beat_s=0.5)
        self.order["keeper"]["port"] = self.port
        self.order.update(host="127.0.0.1", checkpoints=str(self.checkpoints))
        self._payload = base64.b64decode(payload(agent_zip(), work, ROOM))
        self._started: list[subprocess.Popen[bytes]] = []
        self.store = RunStore(Store(self.address, TOKEN), self.run)

    def pod(self, name: str) -> Path:
        """The root folder of a pod, with what a cluster mounts."""
        root = self.folder / name
        if not root.exists():
            for part in ("code", "run"):
                (root / part).mkdir(parents=True)
            (root / "run" / "run.json").write_text(json.dumps(self.order))
            half = len(self._payload) // 2
            (root / "code" / "payload.1").write_bytes(self._payload[half:])
            (root / "code" / "payload.0").write_bytes(self._payload[:half])
            (root / "code" / "start.py").write_bytes(Path(start.__file__).read_bytes())
        return root

    def start(
        self, role: str, index: int = 0, *, uid: str = "first", variables: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """A container: a new one in the same pod where the uid is the same."""
        root = self.pod(f"{role}-{index}-{uid}")
        env = {
            **os.environ,
            "YURT_POD": f"{self.run.run_id}-{role}-{index}",
            "YURT_POD_UID": f"{role}-{index}-{uid}",
            "YURT_NODE": "node1",
            "YURT_NAMESPACE": "here",
            "YURT_INDEX": str(index),
            **(variables or {}),
        }
        with (root / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-I", "-S", str(root / "code" / "start.py"), role, str(root)],
                env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT,
            )  # fmt: skip
        self._started.append(process)
        return process

    def said(self, name: str, uid: str = "first") -> str:
        """A pod's termination message."""
        return (self.folder / f"{name}-{uid}" / "termination-log").read_text()

    def log(self, name: str, uid: str = "first") -> str:
        return (self.folder / f"{name}-{uid}" / "log").read_text()

    def end_all(self) -> None:
        for process in self._started:
            process.kill()
            process.wait()
