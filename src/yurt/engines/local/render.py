"""A run as the agents' command lines and configurations on this machine. Pure."""

from __future__ import annotations

from typing import Any

from yurt.contract.config import AgentConfig
from yurt.contract.spec import RunSpec
from yurt.engines.base import Place
from yurt.engines.local.machine import Machine
from yurt.engines.local.options import LocalOptions
from yurt.engines.shares import divide

#: Seconds without anybody at the launcher's store after which an agent takes the launcher for dead.
STORE_LOST_S = 1.0


def render(run: RunSpec, place: Place, options: LocalOptions, machine: Machine) -> dict[str, Any]:
    """``{"run": id, "notes": [...], "agents": [{"task", "folder", "log", "command", "config"}, ...]}``.

    `command` gets the text of `config` on its standard input: it holds the run's token and the job's environment,
    and so is in no file and on no command line.
    """
    shares, notes = divide(run.tasks, machine.cpus, machine.gpus, pin=options.pin)
    agents = []
    for task in run.tasks:
        folder = place.folder / "tasks" / task.slug
        share = shares[task.name]
        work = folder / "work"
        config = AgentConfig(
            run=run,
            task=task.name,
            allocation=f"{task.slug}-0",
            store=place.store,
            token=place.token,
            store_lost_s=STORE_LOST_S,
            beat_s=1.0,
            peer_check_s=15.0,
            host=options.host,
            placed_on=machine.name,
            work_dir=str(work),
            model_dir=str(work / run.saves_to if run.saves_to else folder / "model"),
            checkpoint_dir=str(place.folder / "checkpoints"),
            tracking_dir=str(place.folder / "tracking"),
            state_dir=str(folder),
            publisher=(machine.python, "-m", "yurt.storage.publish"),
            python_path_first=machine.python_folder,
            cpus=share.cpus,
            threads=share.threads,
            visible_gpus=share.gpus,
            log_times=str(folder / "log.times"),
        )
        agents.append(
            {
                "task": task.name,
                "folder": str(folder),
                "files": str(place.folder / "files"),
                "log": str(folder / "log"),
                # -I -S: neither the user's variables nor site-packages change the agent, and it starts in 50 ms
                "command": [machine.python, "-I", "-S", str(place.agent), "-"],
                "config": config.to_json(),
            }
        )
    return {"run": run.run_id, "notes": notes, "agents": agents}
