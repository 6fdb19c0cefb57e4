"""What a task's process is started with: the command with its place filled in, the environment, the hook."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from yurt.agent import environment as env
from yurt.agent.foreign_source import hook_folder, standard_server_command
from yurt.agent.keras_choice import KerasChoice, choose
from yurt.contract import names
from yurt.contract.config import AgentConfig
from yurt.contract.placeholders import filled
from yurt.contract.spec import KERAS_LEGACY
from yurt.contract.state import RunState


@dataclass(frozen=True, slots=True)
class Beginning:
    """With a `problem` in `keras` the rest is of no use."""

    keras: KerasChoice
    command: tuple[str, ...]
    environment: Mapping[str, str]
    tf_config: str


def beginning(config: AgentConfig, state: RunState, address: str, found: Mapping[str, Any]) -> Beginning:
    """For the next start of this agent's task at `address`; `found` is what the preflight found.

    Writes the hook or the standard server's script into the agent's own folder.
    """
    task = config.run.task(config.task)
    variables, tf_config = env.environment(config, state, address, os.environ)
    keras = choose(config.run, task, found, variables, again=state.keras == KERAS_LEGACY)
    variables = {**keras.environment, **variables}
    if keras.hook:
        variables["PYTHONPATH"] = _first_on(variables.get("PYTHONPATH"), hook_folder(config.state_dir))
    else:
        variables.setdefault(names.HOOK, "0")
    command = task.command or standard_server_command(config.state_dir)
    return Beginning(keras, tuple(filled(command, task, address)), variables, tf_config)


def _first_on(path: str | None, folder: str) -> str:
    return os.pathsep.join([folder, path]) if path else folder
