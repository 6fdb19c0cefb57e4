"""A preflight by itself: what a task would find, without a run."""

from __future__ import annotations

import os

from yurt.agent.environment import environment
from yurt.agent.preflight import Preflight, preflight
from yurt.contract.config import AgentConfig
from yurt.contract.state import RunState


def look(config: AgentConfig, folder: str) -> Preflight:
    """Look as this task's agent would before it starts the task in `folder`."""
    task = config.run.task(config.task)
    variables, _ = environment(config, RunState.first(0.0), "", os.environ)
    return preflight(config.run, task, task.command or ("python", "-"), variables, folder)
