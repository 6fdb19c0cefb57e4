"""Where a task's agent is: its configuration, completed with what only its pod knows."""
# The agent does without pathlib, and this is the agent's process:
# ruff: noqa: PTH103, PTH110, PTH118, PTH123, PTH202, PTH211

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any, Final

#: The way of the training operator.
TFJOB: Final = "tfjob"


def completed(order: Mapping[str, Any], role: str, root: str, variables: Mapping[str, str]) -> dict[str, Any]:
    """The agent's configuration as JSON values.

    `order` is the run's, as rendered; `variables` are the container's: YURT_POD, YURT_POD_UID, YURT_NODE and
    YURT_INDEX, which are the pod's own data.
    """
    local = os.path.join(root, "local")
    lib, work = os.path.join(local, "lib"), os.path.join(local, "work")
    checkpoints = order["checkpoints"] or os.path.join(local, "checkpoints")
    os.makedirs(checkpoints, exist_ok=True)
    config: dict[str, Any] = dict(order["config"])
    saves_to = config["run"]["saves_to"]
    publisher = f"import sys; sys.path.insert(0, {lib!r}); from yurt.storage.publish import main; sys.exit(main())"
    own = order["roles"][role]
    config.update(
        task=f"{role}/{variables['YURT_INDEX']}",
        allocation=f"{variables['YURT_POD_UID']}.{started(local)}",
        host=order["host"].format(role=role, index=variables["YURT_INDEX"], pod=variables["YURT_POD"]),
        placed_on=f"{variables['YURT_NODE']}/{variables['YURT_POD']}",
        work_dir=work,
        model_dir=os.path.join(work, saves_to) if saves_to else os.path.join(local, "model"),
        checkpoint_dir=checkpoints,
        state_dir=os.path.join(local, "state"),
        publisher=[sys.executable, "-c", publisher],
        observe=False,  # the keeper does
        store_lost_s=None,  # a keeper that is away for a while hurts no gang
        threads=own["threads"],
        visible_gpus=own["visible_gpus"],
    )
    if config["python_path_first"] is None and shutil.which("python") is None:
        config["python_path_first"] = _with_python(os.path.join(local, "bin"))
    return config


def _with_python(folder: str) -> str:
    """A folder for PATH in which `python` is this Python: many an image has it as python3 alone."""
    os.makedirs(folder, exist_ok=True)
    link = os.path.join(folder, "python")
    if not os.path.lexists(link):
        os.symlink(sys.executable, link)
    return folder


def started(local: str) -> int:
    """How many agents there were in this pod before: one in a container that starts again is another agent."""
    path = os.path.join(local, "state", "starts")
    count = os.path.getsize(path) if os.path.exists(path) else 0
    with open(path, "ab") as file:
        file.write(b".")
    return count


def give_a_home(local: str) -> None:
    """A home that can be written to, whatever user the container runs as."""
    if not os.access(os.environ.get("HOME", "/nonexistent"), os.W_OK):
        os.environ["HOME"] = os.path.join(local, "home")
