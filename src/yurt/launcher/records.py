"""What is remembered of a run: one folder each, found again from any terminal."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

from yurt.contract.redact import redacted
from yurt.contract.spec import RunSpec
from yurt.contract.state import BROKEN, Beat, Member, RunState, Verdict
from yurt.errors import RunNotFound
from yurt.launcher.home import runs


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All of a run at one moment: its state, the members of its generation, the last heartbeats.

    `waiting` is, for tasks that have not come up, what they wait for, in the engine's words.
    """

    state: RunState
    members: Mapping[str, Member]
    beats: Mapping[str, Beat]
    waiting: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "state": json.loads(self.state.dumps()),
            "members": [{**json.loads(m.dumps()), "order": m.order} for m in self.members.values()],
            "beats": {task: asdict(beat) for task, beat in self.beats.items()},
            "waiting": dict(self.waiting),
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Snapshot:
        """Back from `to_json`."""
        members = [
            Member.loads(json.dumps({k: v for k, v in row.items() if k != "order"}).encode(), row["order"])
            for row in value["members"]
        ]
        return cls(
            state=RunState.loads(json.dumps(value["state"]).encode()),
            members={member.task: member for member in members},
            beats={task: Beat(**beat) for task, beat in value["beats"].items()},
            waiting=value.get("waiting", {}),
        )


class RunFolder:
    """The folder of one run and the files in it."""

    #: False for one that is only there while somebody looks.
    lasting: ClassVar[bool] = True

    def __init__(self, path: Path) -> None:
        self.path = path
        self.run_id = path.name
        self.files = path / "files"
        self.launcher_log = path / "launcher.log"

    def create(self) -> None:
        """Make it, readable by its owner alone."""
        self.path.mkdir(mode=0o700, parents=True)
        (self.path / "checkpoints").mkdir()

    def log(self, task: str) -> Path:
        """The log of a task."""
        return self.path / "tasks" / task.replace("/", "-") / "log"

    def model(self, task: str, saves_to: str | None) -> Path:
        """Where a task saved its model."""
        folder = self.path / "tasks" / task.replace("/", "-")
        return folder / "work" / saves_to if saves_to else folder / "model"

    def write_record(self, spec: RunSpec, *, engine: str, job_file: str | None) -> None:
        """The run as submitted; values of secret variables are not stored."""
        value = spec.to_json()
        for task in value["tasks"]:
            task["env"] = redacted(task["env"])
        self._write("record.json", {"spec": value, "engine": engine, "job_file": job_file})

    def write_host(self, store: str, token: str) -> None:
        """Who serves the run: this process, its store and token. Mode 0600."""
        pid = os.getpid()
        self._write("host.json", {"pid": pid, "started": _started(pid), "store": store, "token": token})

    def forget_host(self) -> None:
        """Nobody serves the run any more: it is over, and all of its output is there."""
        (self.path / "host.json").unlink(missing_ok=True)

    def write_remote(self, handle: Mapping[str, Any]) -> None:
        """How a run that lives on a cluster is found again; see `yurt.launcher.remote_host`."""
        self._write("remote.json", handle)

    def remote(self) -> dict[str, Any] | None:
        """What `write_remote` wrote; None for a run that lives and dies with its launcher."""
        value: dict[str, Any] | None = self._read("remote.json")
        return value

    def forget_remote(self) -> None:
        """Nobody has to look after the run any more."""
        with contextlib.suppress(FileNotFoundError):
            (self.path / "remote.json").replace(self.path / "was-remote.json")

    def forget_handle(self) -> None:
        """Nothing of the run is left on its cluster."""
        for name in ("remote.json", "was-remote.json"):
            (self.path / name).unlink(missing_ok=True)

    def handle(self) -> dict[str, Any] | None:
        """How the engine finds a run on a cluster again, also when it is over; None for one of this machine."""
        value: dict[str, Any] | None = self.remote() or self._read("was-remote.json")
        return value and value["engine"]

    def ask_to_let_go(self, by: str) -> None:
        """Ask whoever serves the run to wait no longer for a cluster that does not answer."""
        self._write("let-go.json", {"by": by})

    def who_lets_go(self) -> str | None:
        """Who has asked so."""
        value: dict[str, str] | None = self._read("let-go.json")
        return value["by"] if value else None

    def write_snapshot(self, snapshot: Snapshot) -> None:
        """The last that was seen."""
        self._write("state.json", {**snapshot.to_json(), "written_at": time.time()})

    def _write(self, name: str, value: Any) -> None:
        part = self.path / f".{name}.part"
        with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w", encoding="utf-8") as file:  # noqa: PTH123
            json.dump(value, file)
        part.replace(self.path / name)

    def _read(self, name: str) -> Any:
        try:
            return json.loads((self.path / name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def record(self) -> dict[str, Any]:
        """What `write_record` wrote. Raises RunNotFound where there is none."""
        value: dict[str, Any] | None = self._read("record.json")
        if value is None:
            raise RunNotFound(f"the run {self.run_id} has no record", hint="`yurt ls` shows the runs there are")
        return value

    def spec(self) -> RunSpec:
        """The run as submitted, secrets left out."""
        return RunSpec.from_json(self.record()["spec"])

    def host(self) -> tuple[str, str] | None:
        """Store and token of the process that serves the run, or None where it is gone."""
        value = self._read("host.json")
        if value is None or _started(value["pid"]) != value["started"]:
            return None
        return value["store"], value["token"]

    def snapshot(self) -> Snapshot | None:
        """The last that was seen; with a verdict of its own where the launcher died before there was one."""
        value = self._read("state.json")
        if value is None:
            return None
        found = Snapshot.from_json(value)
        if found.state.verdict is None and self.host() is None and self.remote() is None:
            value = self._read("state.json") or value  # it may have ended between the two looks
            found = Snapshot.from_json(value)
            if found.state.verdict is None:
                verdict = Verdict(BROKEN, "its launcher was killed; the agents ended what was left of it")
                found = replace(found, state=found.state.ended(verdict, value["written_at"], 0.0))
        return found

    def remove(self) -> None:
        """Forget the run and all it left here."""
        shutil.rmtree(self.path, ignore_errors=True)


def all_runs() -> list[RunFolder]:
    """All remembered runs, the newest first."""
    try:
        folders = [RunFolder(path) for path in runs().iterdir() if (path / "record.json").exists()]
    except FileNotFoundError:
        return []
    return sorted(folders, key=lambda run: (run.path / "record.json").stat().st_mtime, reverse=True)


def find(name: str | None) -> RunFolder:
    """The run with this id, or the only one whose id begins so; None is the newest.

    Raises RunNotFound where there is none, or several.
    """
    known = all_runs()
    if name is None:
        if not known:
            raise RunNotFound("there are no runs yet", hint="`yurt run job.yaml` starts one")
        return known[0]
    exact = [run for run in known if run.run_id == name]
    matching = exact or [run for run in known if run.run_id.startswith(name)]
    if len(matching) == 1:
        return matching[0]
    if matching:
        few = ", ".join(run.run_id for run in matching[:4])
        raise RunNotFound(f"{name!r} could be several runs: {few}", hint="write more of the id")
    raise RunNotFound(f"there is no run {name!r}", hint="`yurt ls` shows the runs there are")


def _started(pid: int) -> str | None:
    """When a process started, in the kernel's ticks: with the id, it names a process for good. None: it is gone."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else fields[19]
