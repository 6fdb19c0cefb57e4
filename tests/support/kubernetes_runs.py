"""Runs in one namespace of a real cluster, and what can be done there to their pods."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.kubernetes_cluster import KubernetesCluster
from tests.support.runs import Folder, Run, wait_until

#: Says which generation it is of, and waits until its pod is told that it is enough.
WAITS = """
import os, time
print("generation", os.environ["YURT_GENERATION"], flush=True)
while not os.path.exists("/tmp/enough"):
    time.sleep(0.05)
print("enough", flush=True)
"""
#: What every namespace has.
_ITS_OWN = "configmap/kube-root-ca.crt"


@dataclass
class ClusterRuns:
    """Of one person, one way: ``none`` or ``tfjob``."""

    cluster: KubernetesCluster
    namespace: str
    folder: Folder
    way: str

    def write(self, *, script: str = WAITS, options: Mapping[str, Any] = {}, **changes: Any) -> Path:
        job = {
            "name": "waits",
            "command": "python train.py",
            "roles": {"worker": 2},
            "image": self.cluster.python_image,
            "restart": "on-failure",
            "start_deadline": 90,
            "grace": 1,
            "engines": {"kubernetes": {"namespace": self.namespace, "operator": self.way, **options}},
            **changes,
        }
        return self.folder.write(job, train=script)

    def start(self, *arguments: str, **what: Any) -> Run:
        """`yurt run` of what `write` writes."""
        return self.folder.start(self.write(**what), "--on", "kubernetes", *arguments)

    def to_its_end(self, **what: Any) -> subprocess.CompletedProcess[str]:
        return self.folder.yurt("run", self.write(**what), "--on", "kubernetes", timeout_s=180)

    def started(self, run: Run, generation: int = 0) -> dict[str, dict[str, Any]]:
        """The members once every process of this generation runs, and has said so."""

        def all_there() -> Any:
            now = run.snapshot()
            members = {member["task"]: member for member in now["members"]}
            state = now["state"]
            there = state["phase"] == "running" and state["generation"] >= generation
            return there and {member["status"] for member in members.values()} == {"started"} and members

        members: dict[str, dict[str, Any]] = wait_until(all_there, 120, f"generation {generation}")
        for task in members:
            run.wait_for_line(task, f"generation {generation}")
        return members

    def pods(self, run: Run, role: str = "") -> list[dict[str, Any]]:
        """Those that are there to stay, the newest last."""
        labels = f"yurt/run={run.run_id}" + (f",yurt/role={role}" if role else "")
        found: list[dict[str, Any]] = self.cluster.get("pods", "-n", self.namespace, "-l", labels)["items"]
        there = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
        return sorted(there, key=lambda pod: pod["metadata"]["creationTimestamp"])

    def pod_of(self, run: Run, task: str) -> str:
        """Its name, from where the task is placed now."""
        return run.member(task)["placed_on"].rpartition("/")[2]  # type: ignore[index]

    def enough(self, run: Run) -> None:
        """Tell every task to end by itself; the deciding one last: once it has ended the others have `grace` and no more."""
        members = {member["task"]: member for member in run.snapshot()["members"]}
        for task in sorted(members, key=lambda name: name in ("chief/0", "worker/0")):
            self.inside(members[task]["placed_on"].rpartition("/")[2], "sh", "-c", ": >/tmp/enough")

    def inside(self, pod: str, *command: str) -> str:
        return self.cluster.kubectl("exec", "-n", self.namespace, pod, "-c", "tensorflow", "--", *command)

    def kill_process(self, run: Run, task: str) -> None:
        """The task's own one, as the kernel does it."""
        member = run.member(task)
        assert member
        self.inside(self.pod_of(run, task), "sh", "-c", f"kill -9 {member['pid']}")

    def signal_container(self, pod: str, number: int = signal.SIGKILL) -> None:
        """Its first process, from its node: from within nobody can."""
        assert self.cluster.own, "whose nodes' processes are this machine's"
        [pid] = [int(each.name) for each in Path("/proc").glob("[0-9]*") if _is_first_of(each, pod)]
        os.kill(pid, number)

    def delete(self, kind: str, name: str) -> None:
        self.cluster.kubectl("delete", kind, name, "-n", self.namespace, "--wait=false")

    def left(self) -> list[str]:
        """Names of all objects of runs, also those that the operator makes."""
        kinds = "pods,jobs,services,secrets,configmaps" + (",tfjobs" if self.way == "tfjob" else "")
        names = self.cluster.kubectl("get", kinds, "-n", self.namespace, "-o", "name").split()
        return sorted(set(names) - {_ITS_OWN})

    def assert_nothing_left(self, within_s: float = 120) -> None:
        """What owned objects are left the cluster removes itself, and is late with it after its API server was away."""
        with suppress(AssertionError):
            wait_until(lambda: not self.left(), within_s)
        assert self.left() == [], "nothing is left in the namespace"


def _is_first_of(process: Path, pod: str) -> bool:
    """Whether it is the first process of this pod's task container."""
    try:
        variables = (process / "environ").read_bytes().split(b"\0")
        status = (process / "status").read_text()
    except OSError:
        return False
    spaces = next(line for line in status.splitlines() if line.startswith("NSpid:"))
    return f"YURT_POD={pod}".encode() in variables and spaces.split()[-1] == "1"
