"""The local engine: glue of what it renders, starts and reads."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel

from yurt.contract.spec import RunSpec
from yurt.engines.base import Allocation, AllocationState, Capabilities, Place, StoreAt
from yurt.engines.local import machine, render
from yurt.engines.local.client import AgentProcess
from yurt.engines.local.options import LocalOptions
from yurt.engines.local.states import state_of
from yurt.engines.log_file import read_from


class LocalEngine:
    """Runs tasks as processes of this machine. One object serves one run."""

    name: ClassVar[str] = "local"
    capabilities: ClassVar[Capabilities] = Capabilities(
        store=StoreAt.LAUNCHER,
        brings_back=False,
        machines=False,
        images=False,
        holds_memory=False,
        holds_cpus=True,
        gpus=True,
    )
    options: ClassVar[type[BaseModel]] = LocalOptions

    def __init__(self) -> None:
        self._agents: dict[str, Mapping[str, Any]] = {}
        self._processes: dict[str, AgentProcess] = {}
        self._starts: dict[str, int] = {}

    def facts(self, options: BaseModel) -> machine.Machine:  # noqa: ARG002 - one machine
        """This machine."""
        return machine.look()

    def prepare(self, run: RunSpec, options: BaseModel) -> str:  # noqa: ARG002 - nothing is made
        """The store is for processes of this machine."""
        return "127.0.0.1"

    def render(self, run: RunSpec, place: Place, options: BaseModel, facts: Any) -> Mapping[str, Any]:
        """See `yurt.engines.local.render`."""
        assert isinstance(options, LocalOptions)
        return render.render(run, place, options, facts)

    def submit(self, request: Mapping[str, Any]) -> None:
        """Start all agents."""
        for agent in request["agents"]:
            self._agents[agent["task"]] = agent
            self._start(agent["task"])

    def describe(self) -> list[Allocation]:
        """Every agent's process, as the kernel has it now."""
        found = []
        for task, process in self._processes.items():
            code = process.poll()
            reason = None
            if code is not None and code < 0:
                reason = f"its agent was killed by {_signal_name(-code)}"
            elif state_of(code) is AllocationState.LOST:
                reason = f"its agent ended with exit code {code}"
            found.append(
                Allocation(
                    id=self._allocation(task),
                    task=task,
                    state=state_of(code),
                    placed_on="this machine",
                    exit_code=code,
                    reason=reason,
                )
            )
        return found

    def bring_back(self, task: str) -> None:
        """Start another agent for this task."""
        self._start(task)

    def logs(self, task: str, offset: int) -> tuple[bytes, int]:
        """From the task's log file."""
        return read_from(self._agents[task]["log"], offset)

    def cancel(self) -> None:
        """Kill the agents; the kernel kills their tasks with them."""
        for process in self._processes.values():
            process.kill()
        for process in self._processes.values():
            process.wait(5)

    def pids(self) -> dict[str, int]:
        """The agents' process ids by task."""
        return {task: process.pid for task, process in self._processes.items()}

    def _allocation(self, task: str) -> str:
        return f"{task.replace('/', '-')}-{self._starts[task] - 1}"

    def _start(self, task: str) -> None:
        self._starts[task] = self._starts.get(task, 0) + 1
        agent = dict(self._agents[task])
        config = {**agent["config"], "allocation": self._allocation(task)}
        self._processes[task] = AgentProcess({**agent, "config": json.dumps(config)})


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
