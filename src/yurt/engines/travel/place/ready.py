"""Makes this node ready for the task: its files first, then the Python that is to run them, then what publishes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yurt.engines.travel.place.environment import Environment


def make_ready(order: Mapping[str, Any], config: dict[str, Any]) -> Environment | None:
    """Complete the agent's configuration; the environment has to be kept for as long as the task runs.

    `order` is what `yurt.engines.travel.travelling` wrote. Raises NotReady.
    """
    if order["files"] is not None:
        from yurt.engines.travel.place.files import fetch  # not in every agent's memory

        fetch(order["files"], config["work_dir"])
    made = _environment(order, config) if order["requirements"] is not None else None
    if made is not None and made.has("obstore"):
        config["publisher"] = [made.python, *config["publisher"][1:]]
    else:
        _ready_to_publish(order, config)
    return made


def _environment(order: Mapping[str, Any], config: dict[str, Any]) -> Environment:
    from yurt.engines.travel.place.environment import environment

    task = next(each for each in config["run"]["tasks"] if f"{each['role']}/{each['index']}" == config["task"])
    variables = {**os.environ, **task["env"]}
    made = environment(
        order["requirements"],
        config["work_dir"],
        order["cache_folder"],
        on_top=order["on_top"],
        variables={name: value for name, value in variables.items() if name != "PYTHONPATH"},
    )
    config["python_path_first"] = made.scripts
    return made


def _ready_to_publish(order: Mapping[str, Any], config: dict[str, Any]) -> None:
    """The one task that publishes to a bucket needs the object store's client."""
    from yurt.contract.spec import RunSpec

    output = config["run"]["output"]
    if output is None or output.startswith("file:") or config["task"] != RunSpec.from_json(config["run"]).deciding:
        return
    from yurt.engines.travel.place.publisher import borrow

    first = borrow(order["publisher"], config["state_dir"], output)
    python, option, script = config["publisher"]
    config["publisher"] = [python, option, first + script]
