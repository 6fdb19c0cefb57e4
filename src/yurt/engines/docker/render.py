"""A run as what the daemon is asked to make: one network, a container for each task. Pure.

The keys of ``network`` and ``container`` are those of Docker's API (1.41): what is rendered is what is sent.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from yurt.contract.config import AgentConfig
from yurt.contract.spec import RunSpec, TaskSpec
from yurt.engines.base import Place
from yurt.engines.docker import owner
from yurt.engines.docker.ground import Ground
from yurt.engines.docker.options import YURT, DockerOptions, volume_parts
from yurt.engines.shares import Share, divide
from yurt.errors import UsageError

#: Seconds without anybody at the launcher's store after which an agent takes the launcher for dead.
STORE_LOST_S: Final = 1.0
HOST_NETWORK: Final = "host"
#: Bytes of /dev/shm, of which Docker gives 64 MiB: too little for NCCL. Only what is used takes memory.
_SHM_BYTES: Final = 1 << 30
#: Seconds that the daemon, when it stops, gives an agent beyond its task's grace time.
_LEAVE_S: Final = 5

_TASK: Final = f"{YURT}/task"
_AGENT: Final = f"{YURT}/agent.pyz"
#: Becomes the agent, whose output goes into the task's log. Any shell understands it.
#: -I -S: neither the image's variables nor site-packages change the agent.
_SCRIPT: Final = f"""\
exec >>{_TASK}/log 2>&1
python=$(command -v {{pythons}}) || {{{{ echo 'yurt: the image has no {{words}}'; exit 127; }}}}
{{present}} || {{{{ mkdir -p {_TASK}/bin && ln -sf "$python" {_TASK}/bin/python; }}}}
exec "$python" -I -S {_AGENT} "$@"
"""


def image_of(run: RunSpec) -> str:
    """The job's image. Raises UsageError where it names none."""
    if run.image is None:
        raise UsageError(
            f"the job {run.job_name} names no image, and Docker needs one",
            hint="write `image: NAME` into the job file; `yurt image build JOB.yaml` makes one",
        )
    return run.image


def network(run: RunSpec, ground: Ground) -> dict[str, Any]:
    """The run's own network, whose name is the run's id."""
    return {"Name": run.run_id, "Driver": "bridge", "Labels": _labels(run, ground)}


def render(run: RunSpec, place: Place, options: DockerOptions, ground: Ground) -> dict[str, Any]:
    """``{"run": id, "notes": [...], "network": {...} or None, "agents": [{"task", "name", "container", ...}, ...]}``.

    `config` is written to the standard input of the container's agent: it holds the run's token and the job's
    environment, and so is in no file and not in `docker inspect`. Raises UsageError where the job names no image.
    """
    shares, notes = divide(run.tasks, ground.cpus, ground.gpus, pin=options.pin)
    agents = []
    for task in run.tasks:
        name = f"{run.run_id}-{task.slug}"
        folder = place.folder / "tasks" / task.slug
        config = AgentConfig(
            run=run,
            task=task.name,
            allocation=f"{task.slug}-0",
            store=_store(place.store, options),
            token=place.token,
            store_lost_s=STORE_LOST_S,
            beat_s=1.0,
            peer_check_s=15.0,
            host="127.0.0.1" if options.network == HOST_NETWORK else name,
            placed_on=name,
            work_dir=f"{_TASK}/work",
            model_dir=f"{_TASK}/work/{run.saves_to}" if run.saves_to else f"{_TASK}/model",
            checkpoint_dir=f"{YURT}/checkpoints",
            state_dir=_TASK,
            publisher=(),
            python_path_first=f"{Path(options.python).parent}:{_TASK}/bin" if options.python else f"{_TASK}/bin",
            cpus=shares[task.name].cpus,
            threads=shares[task.name].threads,
            visible_gpus=_visible_gpus(task, shares[task.name]),
            log_times=f"{_TASK}/log.times",
        )
        agents.append(
            {
                "task": task.name,
                "folder": str(folder),
                "files": str(place.folder / "files"),
                "log": str(folder / "log"),
                "name": name,
                "container": _container(run, task, name, place, options, ground, shares[task.name]),
                "config": config.to_json(),
            }
        )
    own = network(run, ground) if options.network is None else None
    return {"run": run.run_id, "notes": notes, "network": own, "agents": agents}


def looking(agent: Mapping[str, Any]) -> dict[str, Any]:
    """One of a request's agents as it only looks and starts nothing: no network, no name of its own."""
    container = dict(agent["container"])
    container["Cmd"] = ["--preflight"]
    container["HostConfig"] = {**container["HostConfig"], "NetworkMode": "none", "DeviceRequests": []}
    return {**agent, "container": container}


def _container(
    run: RunSpec, task: TaskSpec, name: str, place: Place, options: DockerOptions, ground: Ground, share: Share
) -> dict[str, Any]:
    return {
        "Image": image_of(run),
        "Hostname": name,
        "User": "0:0" if ground.rootless else f"{ground.uid}:{ground.gid}",
        "WorkingDir": _TASK,
        "Entrypoint": ["/bin/sh", "-c", _script(options.python), "yurt"],
        "Cmd": ["-"],
        # A user whom the image does not know has no name there, and many a library asks for it.
        "Env": [f"HOME={_TASK}/home", f"USER={ground.user}", f"LOGNAME={ground.user}"],
        "OpenStdin": True,
        "StdinOnce": True,
        "AttachStdin": True,
        "StopSignal": "SIGTERM",
        "StopTimeout": int(run.grace_s) + _LEAVE_S,
        "Healthcheck": {"Test": ["NONE"]},
        "Labels": {**_labels(run, ground), owner.TASK: task.name},
        "HostConfig": _host_config(run, task, place, options, ground, share),
    }


def _host_config(
    run: RunSpec, task: TaskSpec, place: Place, options: DockerOptions, ground: Ground, share: Share
) -> dict[str, Any]:
    most = len(ground.cpus)
    return {
        "NetworkMode": options.network or run.run_id,
        "Mounts": _mounts(task, place, options),
        # The set makes everything that counts CPUs see the share; the quota holds parts of one.
        "CpusetCpus": ",".join(map(str, share.cpus or ())),
        "NanoCpus": 0 if task.cpus is None else int(min(task.cpus, most) * 1e9),
        # As much for memory with swap as for memory: none is swapped out.
        "Memory": task.memory_bytes or 0,
        "MemorySwap": task.memory_bytes or 0,
        "DeviceRequests": _device_requests(task, share),
        "GroupAdd": [] if ground.rootless else [str(group) for group in ground.groups],
        "ShmSize": _SHM_BYTES,
        "RestartPolicy": {"Name": "no"},
        # The output goes into the task's log; this holds what the daemon itself has to say.
        "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "1"}},
        "UsernsMode": "host" if ground.remaps else "",
        "SecurityOpt": ["label=disable"] if ground.selinux else [],
    }


def _mounts(task: TaskSpec, place: Place, options: DockerOptions) -> list[dict[str, Any]]:
    rows = [
        (str(place.agent), _AGENT, True),
        (str(place.folder / "tasks" / task.slug), _TASK, False),
        (str(place.folder / "checkpoints"), f"{YURT}/checkpoints", False),
        *((str(folder), str(folder), True) for folder in place.linked),
    ]
    for text in options.volumes:
        source, target, mode = volume_parts(text)
        rows.append((source, target, mode == "ro"))
    return [
        {"Type": "bind", "Source": source, "Target": target, "ReadOnly": read_only}
        for source, target, read_only in rows
    ]


def _device_requests(task: TaskSpec, share: Share) -> list[dict[str, Any]]:
    """GPUs by id where this machine sees enough of them; else by number: the daemon knows whether there are any."""
    ids = [gpu for gpu in (share.gpus or "").split(",") if gpu not in ("", "-1")]
    if task.gpus and len(ids) < task.gpus:
        return [{"Driver": "", "Count": task.gpus, "Capabilities": [["gpu"]]}]
    return [{"Driver": "", "DeviceIDs": ids, "Capabilities": [["gpu"]]}] if ids else []


def _visible_gpus(task: TaskSpec, share: Share) -> str | None:
    """A container sees the GPUs it was given, under numbers of its own; one that was given none must not see any."""
    return "-1" if share.gpus == "-1" and not task.gpus else None


def _labels(run: RunSpec, ground: Ground) -> dict[str, str]:
    return {owner.RUN: run.run_id, owner.OWNER: ground.owner}


def _script(python: str | None) -> str:
    if python:
        return _SCRIPT.format(pythons=shlex.quote(python), words=python.replace("'", ""), present="false")
    return _SCRIPT.format(
        pythons="python3 || command -v python",
        words="Python (python3 or python) on its PATH",
        present="command -v python >/dev/null",
    )


def _store(address: str, options: DockerOptions) -> str:
    if options.store_host is None:
        return address
    parts = urlsplit(address)
    return parts._replace(netloc=f"{options.store_host}:{parts.port}").geturl()
