"""The keeper: the pod that holds a run's store, moves the run on, and has its verdict in its last words.

It decides nothing that an agent could not: `yurt.contract.decide` does. It is there so that the run's state does not go
with the pod of a task. A keeper that is lost comes back, and is filled from its file or by the agents
(`yurt.agent.remembering`).
"""
# The agent does without pathlib, and this is the agent's process:
# ruff: noqa: PTH118

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from yurt.agent.silence import watch_silence
from yurt.contract import names
from yurt.contract.config import AgentConfig
from yurt.contract.state import EXITED, LOST, PUBLISH_FAILED, Beat, Member, RunState
from yurt.engines.kubernetes.pod.absent import Absent
from yurt.engines.kubernetes.pod.last_words import keepers, say
from yurt.engines.kubernetes.pod.resubmit import Resubmission, note_rights
from yurt.engines.kubernetes.pod.start import termination_log
from yurt.engines.kubernetes.pod.state_file import StateFile
from yurt.engines.kubernetes.pod.stopped import Stopped
from yurt.errors import EngineError, StoreError
from yurt.kv.client import Store
from yurt.kv.run_index import RunIndex
from yurt.kv.run_store import RunStore
from yurt.kv.server import EmbeddedStore
from yurt.kv.watching import watch_members, watch_state

if TYPE_CHECKING:
    from yurt.engines.kubernetes.pod.cluster import PodCluster

#: Seconds between two looks at the clock while nothing happens.
_LOOK_S: Final = 1.0
#: Seconds between two writings of the file for heartbeats alone.
_WRITE_S: Final = 15.0
#: Seconds beyond the grace time of their tasks that agents have to leave.
_LEAVE_S: Final = 15.0
#: Seconds for which whoever watches the run may read its end from here.
_LINGER_S: Final = 3.0
#: Seconds beyond the cluster's own patience after which a silent member is lost.
_SILENT_S: Final = 30.0
#: The engine's name in the list of runs.
_ENGINE: Final = "kubernetes"


class Keeper:
    """One run's, until it has its verdict and its agents have left."""

    def __init__(self, config: AgentConfig, order: Mapping[str, Any], folder: str) -> None:
        self._spec = config.run
        self._order = order
        # Milliseconds since 1970: higher than any index of a keeper that was here before.
        self._server = EmbeddedStore("", order["port"], token=config.token, first_index=int(time.time() * 1000))
        self._token = config.token
        self._file = StateFile(os.path.join(folder, "store"), self._server.state, names.beats_prefix(self._spec.run_id))
        self._silent_after_s = max(config.silent_after_s or 0.0, order["node_lost_after_s"] + _SILENT_S)
        self._cluster = _cluster(self._spec.run_id, order)
        self._over = False
        self._wakes: queue.SimpleQueue[None] = queue.SimpleQueue()

    def run(self) -> str:
        """The last words. Raises StoreError where the store cannot be served."""
        restored = self._file.restore()
        self._server.start()
        store = Store(self._server.address, self._token)
        runs = RunStore(store, self._spec)
        RunIndex(store).enter(self._spec, _ENGINE)
        runs.create()
        print(f"yurt: keeps the state of {self._spec.run_id}" + (", as it was before" if restored else ""), flush=True)
        watch_state(store, self._spec.run_id, on_state=self._wake, lost_after_s=None, on_lost=self._wake)
        watch_members(store, self._spec.run_id, self._wake)
        watch_silence(runs, self._silent_after_s, self._wake)
        self._follow_tfjobs(runs)
        state = self._keep(runs)
        members, beats = self._see_off(runs, state)
        self._server.close()
        if state.verdict is None or state.verdict.outcome != PUBLISH_FAILED:  # else a pod holds the model
            self._clean()
        return keepers(self._spec, state, members, beats)

    def _keep(self, runs: RunStore) -> RunState:
        absent = Absent(runs)
        stopped = Stopped(runs, self._spec.start_deadline_s) if self._order["tfjob"] is not None else None
        written_at = 0.0
        told: tuple[int, str] | None = None
        while True:
            state = runs.advance()
            if told != (state.generation, state.phase):
                told = (state.generation, state.phase)
                print(f"yurt: generation {state.generation}: {state.phase}", flush=True)
            now = time.monotonic()
            seldom = now - written_at >= _WRITE_S
            self._file.write(seldom=seldom)
            written_at = now if seldom else written_at
            if state.verdict is not None:
                self._over = True
                print(f"yurt: {state.verdict.outcome}: {state.verdict.message}", flush=True)
                return state
            if not absent.look(state) and not (stopped is not None and stopped.look(state)):
                self._rest(_LOOK_S)

    def _see_off(self, runs: RunStore, state: RunState) -> tuple[Mapping[str, Member], Mapping[str, Beat]]:
        """Wait until the agents have left, and whoever watches has read what they left."""
        end = time.monotonic() + state.stop_grace_s + _LEAVE_S
        while any(not _has_left(task.name, runs, state) for task in self._spec.tasks) and time.monotonic() < end:
            self._rest(_LOOK_S)
        self._file.write()
        time.sleep(_LINGER_S)
        return runs.members(state.generation), runs.beats()

    # What it does in the cluster, where it has an account.

    def _follow_tfjobs(self, runs: RunStore) -> None:
        """Submit the run's TFJob again where it is lost, in a thread; or say that somebody else has to."""
        if self._order["tfjob"] is None:
            return
        if self._cluster is None:
            note_rights(runs, "the keeper's pod has no account of the cluster")
            return
        from yurt.engines.kubernetes.pod.cluster import follow

        cluster = self._cluster
        resubmission = Resubmission(cluster, runs, self._order["tfjob"])

        def look() -> float | None:
            pause_s = resubmission.look()
            note_rights(runs, None)  # the same value again is no change
            return pause_s

        def refused(error: EngineError) -> None:
            print(f"yurt: a lost TFJob is not submitted again from here: {error}", flush=True)
            note_rights(runs, str(error))

        def over() -> bool:
            return self._over

        threading.Thread(target=follow, args=(cluster, look, over, refused), name="tfjobs", daemon=True).start()

    def _clean(self) -> None:
        """Remove what is left of the run and still wants to run, such as a pod that finds no room."""
        if self._cluster is None or not self._order["cleans"]:
            return
        try:
            self._cluster.clean(tfjobs=self._order["tfjob"] is not None)
        except EngineError as error:
            print(f"yurt: what is left of the run could not be removed: {error}", flush=True)

    def _rest(self, seconds: float) -> None:
        """Until something changes, or so long; what has come meanwhile is one waking."""
        try:
            self._wakes.get(timeout=seconds)
            while True:
                self._wakes.get_nowait()
        except queue.Empty:
            pass

    def _wake(self, _state: RunState | None = None) -> None:
        self._wakes.put(None)


def _has_left(task: str, runs: RunStore, state: RunState) -> bool:
    """Whether its agent knows of the verdict: one that comes now leaves without a member, but not without a beat."""
    member, _ = runs.member(state.generation, task)
    if member is not None:
        return member.status in (EXITED, LOST)
    return runs.store.get(names.beat_key(runs.spec.run_id, task)) is not None


def _cluster(run_id: str, order: Mapping[str, Any]) -> PodCluster | None:
    """The cluster, where there is something to be done in it: what speaks to it takes 7 MiB."""
    if order["tfjob"] is None and not order["cleans"]:
        return None
    from yurt.engines.kubernetes.pod.cluster import own_cluster

    return own_cluster(os.environ, run_id, order["namespace"])


def run(order: Mapping[str, Any], root: str) -> int:
    """The container's exit code: 0 once the run has its verdict."""
    config = AgentConfig.from_json(order["config"])
    try:
        words = Keeper(config, order["keeper"], os.path.join(root, "local", "state")).run()
    except StoreError as error:
        say(termination_log(root), f"the keeper cannot go on: {error}")
        print(f"yurt: the keeper cannot go on: {error}", flush=True)
        return 1
    say(termination_log(root), words)
    return 0
