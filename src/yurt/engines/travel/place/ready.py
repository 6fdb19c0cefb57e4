"""Makes this node ready for the task: its files first, then the Python that is to run them."""

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
    if order["requirements"] is None:
        return None
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
    if made.has("obstore"):
        config["publisher"] = [made.python, *config["publisher"][1:]]
    return made
