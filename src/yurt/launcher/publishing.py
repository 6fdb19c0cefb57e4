"""Publishes the model where no agent can: from the run's folder on this machine, in a process beside the launcher."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from yurt.agent.publish import Publishing
from yurt.contract.config import AgentConfig
from yurt.contract.spec import RunSpec
from yurt.contract.state import CLOSING, RunState
from yurt.kv.run_store import RunStore
from yurt.launcher.records import RunFolder

#: The publisher, as a process of this Python.
PUBLISHER = (sys.executable, "-m", "yurt.storage.publish")


class LauncherPublishes:
    """Does for one run what the deciding task's agent does elsewhere: publish once, and say how it went."""

    def __init__(self, folder: RunFolder, spec: RunSpec, store: RunStore, wake: Callable[[], None]) -> None:
        self._folder = folder
        self._spec = spec
        self._store = store
        self._wake = wake
        self._publishing: Publishing | None = None
        self._answer: dict[str, Any] | None = None

    def look(self, state: RunState, config: Mapping[str, Any]) -> RunState:
        """Start the publisher once the run is closing, and move the run on once it has answered.

        `config` is that of the deciding task's agent. Call it from the main thread.
        """
        if state.phase != CLOSING or self._spec.output is None:
            return state
        if self._publishing is None:
            self._publishing = Publishing(self._here(config), self._progress(), self._take)
        if self._answer is None:
            return state
        member, index = self._store.member(state.generation, self._spec.deciding)
        if member is not None and member.published is None:
            self._store.put_member(state.generation, replace(member, published=self._answer), cas=index)
        return self._store.advance()

    def stop(self) -> None:
        """End it; nothing half-published is visible."""
        if self._publishing:
            self._publishing.stop()

    def _here(self, config: Mapping[str, Any]) -> AgentConfig:
        """The agent's configuration with this machine's paths in place of those in the task's place."""
        task = self._spec.deciding
        return replace(
            AgentConfig.from_json(config),
            model_dir=str(self._folder.model(task, self._spec.saves_to)),
            state_dir=str(self._folder.log(task).parent),
            publisher=PUBLISHER,
            environment={},
        )

    def _progress(self) -> Mapping[str, Any]:
        beat = self._store.beats().get(self._spec.deciding)
        return beat.progress if beat else {}

    def _take(self, answer: dict[str, Any]) -> None:
        self._answer = answer
        self._wake()
