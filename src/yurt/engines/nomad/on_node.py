"""The first thing that runs in an allocation; travels as text and is run by the node's own Python.

It unpacks what came with the job, completes the agent's configuration with what only this place knows (which task it
is, where it is), and becomes the agent. It ends with 0 also where the run did not succeed: the run's verdict is in
Consul, and Nomad starts again whatever ends otherwise.
"""
# The agent does without pathlib, and this is the agent's process:
# ruff: noqa: PTH103, PTH105, PTH112, PTH110, PTH118, PTH123, PTH202

from __future__ import annotations

import ctypes
import io
import json
import os
import signal
import sys
import tarfile
from typing import Any

PR_SET_PDEATHSIG = 1
OLDEST = (3, 11)
TOO_OLD = 78


def main() -> int:
    """The exit code for Nomad."""
    os.dup2(1, 2)  # Nomad keeps two streams without a common order
    if sys.version_info < OLDEST:
        found = ".".join(str(part) for part in sys.version_info[:2])
        print(f"yurt: {sys.executable} is Python {found}; the agent needs 3.11: see engines: nomad: python", flush=True)
        return TOO_OLD
    # An executor of Nomad's that is killed leaves its task running: nobody would stop it any more.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    local = os.environ["NOMAD_TASK_DIR"]
    lib = os.path.join(local, "lib")
    unpack(os.path.join(local, "payload.tar.xz"), local)
    sys.path.insert(0, lib)
    with open(os.path.join(os.environ["NOMAD_SECRETS_DIR"], "run.json"), encoding="utf-8") as file:
        order = json.load(file)
    config = completed(order, local, lib)
    clean_environment(local, order["secrets"])
    from yurt.agent.__main__ import main as agent
    from yurt.contract.config import AgentConfig
    from yurt.engines.travel.place.problem import NotReady
    from yurt.engines.travel.place.ready import make_ready
    from yurt.engines.travel.place.refusing import RefusingSupervisor

    with open(os.path.join(lib, "ready.json"), encoding="utf-8") as file:
        wanted = json.load(file)
    try:
        find_secrets(order["secrets"])
        held = make_ready(wanted, config)
    except NotReady as problem:
        os.makedirs(config["work_dir"], exist_ok=True)
        code = RefusingSupervisor(AgentConfig.from_json(config), problem).run()
        return 0 if code == 1 else code
    sys.stdin = io.StringIO(json.dumps(config))
    code = agent(["-"])
    del held  # not before: others may clear away what nobody holds
    return 0 if code == 1 else code


def unpack(archive: str, folder: str) -> None:
    """The agent's modules (`lib`) and, where they travel in the job, its files (`work`).

    What is there already is left as it is.
    """
    for name in ("state", "model"):
        os.makedirs(os.path.join(folder, name), exist_ok=True)
    part = os.path.join(folder, ".part")
    if os.path.isdir(os.path.join(folder, "lib")):
        return
    with tarfile.open(archive) as tar:
        if hasattr(tarfile, "data_filter"):  # not before Python 3.11.4
            tar.extraction_filter = tarfile.data_filter
        tar.extractall(part)  # noqa: S202 - our own archive
    for name in ("work", "lib"):  # the last says that all are there
        source, target = os.path.join(part, name), os.path.join(folder, name)
        if os.path.isdir(source) and not os.path.isdir(target):
            os.replace(source, target)


def completed(order: dict[str, Any], local: str, lib: str) -> dict[str, Any]:
    """The agent's configuration as JSON values."""
    task = f"{order['role']}/{os.environ['NOMAD_ALLOC_INDEX']}"
    config: dict[str, Any] = order["config"]
    work = os.path.join(local, "work")
    saves_to = config["run"]["saves_to"]
    checkpoints = order["checkpoints"] or os.path.join(local, "checkpoints")
    os.makedirs(checkpoints, exist_ok=True)
    publisher = f"import sys; sys.path.insert(0, {lib!r}); from yurt.storage.publish import main; sys.exit(main())"
    config.update(
        task=task,
        allocation=f"{os.environ['NOMAD_ALLOC_ID']}.{started(local)}",
        host=os.environ["YURT_HOST"],
        port=int(os.environ["YURT_PORT"]),
        placed_on=os.environ["YURT_NODE"],
        work_dir=work,
        model_dir=os.path.join(work, saves_to) if saves_to else os.path.join(local, "model"),
        checkpoint_dir=checkpoints,
        state_dir=os.path.join(local, "state"),
        publisher=[sys.executable, "-c", publisher],
        observe=task in order["observers"],
    )
    if order["gpus"]:
        config["visible_gpus"] = os.environ.get("NVIDIA_VISIBLE_DEVICES", "")
    return config


def started(local: str) -> int:
    """How many agents there were in this allocation before: one that Nomad starts again in place is another agent."""
    path = os.path.join(local, "state", "starts")
    count = os.path.getsize(path) if os.path.exists(path) else 0
    with open(path, "ab") as file:
        file.write(b".")
    return count


def find_secrets(wanted: list[str]) -> None:
    """Raises NotReady for a secret that has no value where the job says: Nomad's template leaves it out."""
    from yurt.engines.travel.place.problem import NotReady

    if missing := [name for name in wanted if name not in os.environ]:
        raise NotReady(
            f"no value was found for {' and '.join(missing)}", hint="see its path and key: engines: nomad: secrets"
        )


def clean_environment(local: str, wanted: list[str]) -> None:
    """Leave out what the Nomad client was started with and no task should see; give a home where there is none.

    `wanted` are the job's own secrets, which stay.
    """
    from yurt.contract.redact import secret

    for name in list(os.environ):
        if name in wanted or name == "NOMAD_SECRETS_DIR":
            continue
        if name.startswith(("CONSUL_", "VAULT_")) or secret(name):
            del os.environ[name]
    if not os.access(os.environ.get("HOME", "/nonexistent"), os.W_OK):
        os.environ["HOME"] = local


if __name__ == "__main__":
    sys.exit(main())
