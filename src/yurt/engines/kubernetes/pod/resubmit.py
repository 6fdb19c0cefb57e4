"""Follows the TFJobs of a run and submits it again where one is lost: see `yurt.engines.kubernetes.pod.tfjobs`."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, Protocol

from yurt.contract import names
from yurt.contract.spec import EVALUATOR, PARAMETER_SERVER, WORKER, RunSpec
from yurt.contract.state import CLOSING, LOST, Exit, Member, RunState
from yurt.engines.kubernetes.pod.tfjobs import COUNT, DELETE, SUBMIT, WATCH, Why, is_over, next_step, number_of
from yurt.kv.run_store import RunStore

#: Seconds, beyond the grace time of their tasks, after which the pods of a lost TFJob are not waited for any more.
_GONE_S: Final = 60.0
_SOON_S: Final = 1.0


class Cluster(Protocol):
    """What it needs of the API server; every method raises EngineError."""

    def tfjobs(self) -> Sequence[Mapping[str, Any]]:
        """All of the run."""

    def pods(self) -> Sequence[Mapping[str, Any]]:
        """All of the run."""

    def create(self, tfjob: Mapping[str, Any]) -> None:
        """One that exists is no error."""

    def delete(self, name: str) -> None:
        """With its pods, in the foreground; one that is gone is no error."""


class Resubmission:
    """One run's; `tfjob` is the object as it was submitted first."""

    def __init__(self, cluster: Cluster, runs: RunStore, tfjob: Mapping[str, Any]) -> None:
        self._cluster = cluster
        self._runs = runs
        self._tfjob = tfjob
        self._seen: int | None = None
        self._why: Why | None = None
        self._over_since: float | None = None

    def look(self) -> float | None:
        """Do what is to be done; seconds until it should be asked again, or None: when a TFJob has changed.

        Raises EngineError or StoreError; asked again, it goes on from where it was.
        """
        spec = self._runs.spec
        tfjobs = self._cluster.tfjobs()  # before the state: an agent ends after the verdict stands
        state, _ = self._runs.read()
        self._seen = max([number_of(spec.run_id, each) for each in tfjobs], default=self._seen)
        if state.verdict is not None or any(not is_over(each) for each in tfjobs):
            self._over_since, self._why = None, None
            return None
        now = time.monotonic()
        self._over_since = self._over_since or now
        step = next_step(
            spec.run_id,
            state,
            self._runs.members(state.generation),
            tfjobs,
            self._cluster.pods() if tfjobs or self._seen is not None else (),
            seen=self._seen,
            patient=now - self._over_since < spec.grace_s + _GONE_S,
        )
        if step.action == WATCH:
            return None
        if step.action == DELETE:
            self._why = self._why or step.why
            self._cluster.delete(step.name)
        elif step.action == COUNT:
            lose_gang(self._runs, state, self._why or Why(f"TFJob {self._tfjob['metadata']['name']} is gone"))
        elif step.action == SUBMIT:
            metadata = {**self._tfjob["metadata"], "name": step.name}
            self._cluster.create({**self._tfjob, "metadata": metadata})
            return None
        return _SOON_S


def lose_gang(runs: RunStore, state: RunState, why: Why) -> RunState:
    """All tasks of this generation are lost at once: the state that follows, one restart later, or with its verdict."""
    task = _speaker(runs.spec, runs.members(state.generation), why.task, closing=state.phase == CLOSING)
    member, index = runs.member(state.generation, task)
    attempt = state.attempts.get(task, 0)
    end = Exit(code=137, reason="lost", at=time.time(), attempt=attempt, message=why.words)
    if member is not None and member.exit is not None and member.exit.code == 0:
        end = member.exit  # it had finished; what it still did is lost
    lost = replace(member or Member(task, "", "", LOST, attempt), status=LOST, exit=end)
    runs.put_member(state.generation, lost, cas=index)
    return runs.advance()


def _speaker(spec: RunSpec, members: Mapping[str, Member], first: str | None, *, closing: bool) -> str:
    """The task whose loss is that of the gang: `first` where it can be."""
    if closing:
        return spec.deciding

    def rank(task: str) -> tuple[bool, bool, bool]:
        member, role = members.get(task), spec.task(task).role
        finished = member is not None and member.exit is not None and member.exit.code == 0
        alone = role == EVALUATOR or (role == WORKER and spec.strategy == PARAMETER_SERVER)
        return finished, alone, task != first

    return min((spec.deciding, *spec.gang), key=rank)


def note_rights(runs: RunStore, why_not: str | None) -> None:
    """Say in the store whether the keeper submits again, or leaves it to a launcher, and why."""
    value = {"may_submit": why_not is None, "why": why_not}
    runs.store.put(names.keeper_key(runs.spec.run_id), json.dumps(value).encode())
