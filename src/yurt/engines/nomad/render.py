"""A run as one batch job of Nomad's, a group a role. Pure."""

from __future__ import annotations

import copy
import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import Any, Final
from urllib.parse import urlsplit

from yurt.contract.config import AgentConfig
from yurt.contract.spec import ROLES, RunSpec, TaskSpec
from yurt.engines.base import Place
from yurt.engines.nomad import secret_variables, versions
from yurt.engines.nomad.nodes import Cluster, Node
from yurt.engines.nomad.options import Affinity, Constraint, Gpu, NomadOptions
from yurt.engines.nomad.quoting import in_config, template
from yurt.errors import UsageError

#: Stands in the rendered job where `submit` puts the packed files: a person reads the rest.
PAYLOAD: Final = "<payload>"
PAYLOAD_PATH: Final = "local/payload.tar.xz"
TASK: Final = "agent"
PORT: Final = "tf"
NODE_CONSUL: Final = "http://127.0.0.1:8500"
NODE_CONSUL_TLS: Final = "https://127.0.0.1:8501"
_LOOPBACKS: Final = ("127.0.0.1", "localhost", "::1")
_START: Final = Path(__file__).with_name("on_node.py").read_text(encoding="utf-8")
_SECOND: Final = 1_000_000_000
#: Clients allow no longer one unless they are told to (1.1.15, 1.2.9, 1.3.2 and later).
_LONGEST_KILL_S: Final = 30.0
#: Seconds beyond a task's grace time that its agent needs to say how it ended.
_REPORT_S: Final = 3.0
#: As many agents watch the run for all: one may be gone with its node.
_OBSERVERS: Final = 2
#: Seconds between a task's heartbeats; no more than so many in a second of the whole run.
_BEAT_S: Final = 2.0
_MOST_BEATS_S: Final = 50
#: A task without progress beats every tenth time; after three of those it is taken for lost.
_SILENT_BEATS: Final = 30
#: What a task gets that may share its node and names no numbers.
_SHARED_MHZ: Final = 1000
_SHARED_MB: Final = 1024
_NO_SHARED_FOLDER: Final = (
    "without engines: nomad: shared_folder each task has a checkpoint folder of its own: after a restart yurt.training"
    " goes on from the leader's, but Keras's BackupAndRestore needs one that all see"
)


def render(run: RunSpec, place: Place, options: NomadOptions, cluster: Cluster) -> dict[str, Any]:
    """``{"run": id, "notes": [...], "payload": {"agent", "files"}, "job": {...}}``.

    `job` is what ``POST /v1/jobs`` takes, but for the packed files.
    """
    notes = [] if cluster.unknown is None else [cluster.unknown]
    notes += _refused_or_left_out(options, cluster.nomad)
    if twice := sorted(options.secrets.keys() & {name for task in run.tasks for name in task.env}):
        raise UsageError(
            f"{', '.join(twice)}: both in env and in engines: nomad: secrets", hint="leave out one of them"
        )
    if options.network == "bridge" and options.driver == "raw_exec":
        raise UsageError("raw_exec runs on the node's own network", hint="network: bridge needs driver: exec or docker")
    if options.volumes and options.driver == "raw_exec":
        raise UsageError(
            "raw_exec has no volumes: its tasks see the node's own folders", hint="volumes need driver: exec or docker"
        )
    datacenters = options.datacenters or cluster.datacenters
    nodes = cluster.candidates(datacenters, options.node_pool, options.driver)
    cores = options.cores and versions.knows(cluster.nomad, versions.CORES)
    groups = [
        _group(run, [task for task in run.tasks if task.role == role], place, options, nodes, cores=cores)
        for role in ROLES
        if any(task.role == role for task in run.tasks)
    ]
    constraints = _constraints(options.constraints)
    if not options.share:
        constraints.append({"Operand": "distinct_hosts", "RTarget": "true"})
    if not run.output:
        notes.append(
            f"the job names no output: its model stays on the node of {run.deciding}, until Nomad clears it away"
        )
    elif run.output.startswith("file:") and len({node.name for node in nodes}) > 1:
        notes.append(f"the model is published to {run.output} on the node of {run.deciding}, not on this machine")
    if run.strategy == "multi-worker-mirrored" and len(run.gang) > 1 and run.restart != "never":
        notes += [] if options.shared_folder else [_NO_SHARED_FOLDER]
    job: dict[str, Any] = {
        "ID": run.run_id,
        "Name": run.run_id,
        "Type": "batch",
        "Priority": options.priority,
        "Datacenters": list(datacenters),
        "Constraints": constraints,
        "Affinities": _affinities(options.affinities),
        "Meta": {**options.meta, "yurt_job": run.job_name},
        "TaskGroups": groups,
    }
    if options.region:
        job["Region"] = options.region
    if options.namespace:
        job["Namespace"] = options.namespace
    if options.node_pool:
        job["NodePool"] = options.node_pool
    return {
        "run": run.run_id,
        "notes": notes,
        "payload": {"agent": str(place.agent), "files": str(place.folder / "files")},
        "job": job,
    }


def _refused_or_left_out(options: NomadOptions, version: str) -> list[str]:
    """What the cluster's version lacks of what the options ask for. Raises EngineError."""
    versions.check_oldest(version)
    asked = {
        versions.CORES: options.cores,
        versions.BRIDGE_EXEC: options.network == "bridge" and options.driver == "exec",
        versions.NOMAD_VARIABLES: any(secret.variable for secret in options.secrets.values()),
        versions.ALL_DATACENTERS: any("*" in name for name in options.datacenters or ()),
        versions.NODE_POOL: options.node_pool,
        versions.VAULT_ROLE: options.vault.role,
    }
    found = [versions.missing(version, feature) for feature, wanted in asked.items() if wanted]
    return [note for note in found if note is not None]


def _constraints(wanted: Sequence[Constraint]) -> list[dict[str, Any]]:
    return [{"LTarget": each.attribute, "Operand": each.operator, "RTarget": each.value} for each in wanted]


def _affinities(wanted: Sequence[Affinity]) -> list[dict[str, Any]]:
    return [
        {"LTarget": each.attribute, "Operand": each.operator, "RTarget": each.value, "Weight": each.weight}
        for each in wanted
    ]


def _network(options: NomadOptions) -> dict[str, Any]:
    """One port of Nomad's dynamic range: its firewalls let it through, and no two tasks get the same.

    In a bridge it has the same number inside (``To: -1``), since tasks bind the number that their peers are told.
    """
    port = {"Label": PORT, "To": -1} if options.network == "bridge" else {"Label": PORT}
    return {"Mode": options.network, "DynamicPorts": [port]}


def _group(
    run: RunSpec,
    tasks: Sequence[TaskSpec],
    place: Place,
    options: NomadOptions,
    nodes: Sequence[Node],
    *,
    cores: bool,
) -> dict[str, Any]:
    role = tasks[0].role
    vault = secret_variables.vault(options)
    return {
        "Name": role,
        "Count": len(tasks),
        # Only what ended otherwise than by the run's end is started again, where it is: an agent that was killed.
        "RestartPolicy": {
            "Attempts": max(1, run.max_restarts),
            "Interval": 24 * 3600 * _SECOND,
            "Delay": _SECOND,
            "Mode": "fail",
        },
        # A lost allocation is replaced whatever is written here.
        "ReschedulePolicy": {"Attempts": 0, "Unlimited": False},
        "Networks": [_network(options)],
        "EphemeralDisk": {"SizeMB": options.disk_mb, "Sticky": False, "Migrate": False},
        "Volumes": {
            name: {"Name": name, "Type": "host", "Source": volume.source, "ReadOnly": volume.read_only}
            for name, volume in options.volumes.items()
        },
        "Tasks": [
            {
                "Name": TASK,
                "Driver": options.driver,
                "Config": _driver_config(run, options),
                "Env": {
                    "YURT_HOST": options.host or f"${{NOMAD_HOST_IP_{PORT}}}",
                    "YURT_PORT": f"${{NOMAD_PORT_{PORT}}}",
                    "YURT_NODE": "${node.unique.name}",
                },
                "Templates": [
                    template(_START, "local/start.py"),
                    template(_order(run, role, tasks[0], place, options), "secrets/run.json"),
                    template(PAYLOAD, PAYLOAD_PATH),
                    *secret_variables.templates(options.secrets),
                ],
                **({"Vault": vault} if vault else {}),
                "Resources": _resources(run, tasks[0], options, nodes, cores=cores),
                "LogConfig": {"MaxFiles": 10, "MaxFileSizeMB": max(1, options.disk_mb * 2 // 3 // 10)},
                "KillSignal": "SIGTERM",
                "KillTimeout": int(min(run.grace_s + _REPORT_S, _LONGEST_KILL_S) * _SECOND),
                "VolumeMounts": [
                    {"Volume": name, "Destination": volume.path, "ReadOnly": volume.read_only}
                    for name, volume in options.volumes.items()
                ],
            }
        ],
    }


def _driver_config(run: RunSpec, options: NomadOptions) -> dict[str, Any]:
    # -I -S: neither the node's variables nor site-packages change the agent
    start = ["-I", "-S", "${NOMAD_TASK_DIR}/start.py"]
    command, arguments = options.python, start
    if options.driver == "exec" and any(_inside(command, volume.path) for volume in options.volumes.values()):
        # Nomad looks for a task's program in its chroot, where no volume is yet (1.0.18)
        command, arguments = "/usr/bin/env", [in_config(command), *start]
    config: dict[str, Any] = {"command": in_config(command), "args": arguments}
    if options.driver == "docker":
        if run.image is None:
            raise UsageError("Nomad's driver docker needs an image", hint="give the job one: image: NAME")
        config["image"] = in_config(run.image)
        if options.network == "host":  # a group's host network alone leaves the container on Docker's own
            config["network_mode"] = "host"
    return {**config, **options.config}


def _inside(path: str, folder: str) -> bool:
    return PurePosixPath(path).is_relative_to(folder)


def _order(run: RunSpec, role: str, task: TaskSpec, place: Place, options: NomadOptions) -> str:
    """What the script on the node reads: the agent's configuration, where the place does not decide."""
    folder = options.python.rpartition("/")[0]
    store = consul_of(options, place)
    beat_s = max(_BEAT_S, len(run.tasks) / _MOST_BEATS_S)
    config = AgentConfig(
        run=run,
        task=f"{role}/?",
        allocation="",
        store=store,
        store_tls=options.consul_tls.model_dump(exclude_defaults=True) if store.startswith("https:") else {},
        token=place.token,
        host="",
        placed_on="",
        work_dir="",
        model_dir="",
        checkpoint_dir="",
        state_dir="",
        publisher=(),
        reaches_itself=options.network != "bridge",
        store_lost_s=None,
        beat_s=beat_s,
        silent_after_s=beat_s * _SILENT_BEATS,
        python_path_first=folder or None,
        threads=math.ceil(task.cpus) if task.cpus is not None else None,
    )
    order = {
        "role": role,
        "observers": list(run.gang[:_OBSERVERS]),
        "checkpoints": f"{options.shared_folder}/{run.run_id}/checkpoints" if options.shared_folder else None,
        "gpus": bool(task.gpus),
        "secrets": sorted(options.secrets),
        "config": config.to_json(),
    }
    return json.dumps(order, indent=1, sort_keys=True) + "\n"


def consul_of(options: NomadOptions, place: Place) -> str:
    """Consul as tasks reach it: what the options say; else their node's own.

    Where the launcher's is on its own machine's loopback, the nodes' are taken to be at the same address of theirs;
    where it is spoken to over TLS, so are theirs. Raises UsageError where tasks have a loopback of their own.
    """
    launchers = urlsplit(place.store)
    nodes_own = NODE_CONSUL_TLS if launchers.scheme == "https" else NODE_CONSUL
    found = options.consul or (place.store if launchers.hostname in _LOOPBACKS else nodes_own)
    if options.network == "bridge" and urlsplit(found).hostname in _LOOPBACKS:
        raise UsageError(
            f"in a bridge network {found} is the task's own loopback, where no Consul is",
            hint="say in consul: where tasks reach it, such as http://172.26.64.1:8500",
        )
    return found


def _resources(
    run: RunSpec, task: TaskSpec, options: NomadOptions, nodes: Sequence[Node], *, cores: bool
) -> dict[str, Any]:
    """What each task of a role asks for: the numbers of the job; else the whole node, as large as enough nodes are."""
    large = sorted(nodes, key=lambda node: (node.memory_mb, node.cpu_mhz), reverse=True)[: len(run.tasks)]
    whole_mhz = min((node.cpu_mhz for node in large), default=_SHARED_MHZ)
    whole_mb = min((node.memory_mb for node in large), default=_SHARED_MB)
    mhz = _SHARED_MHZ if options.share else whole_mhz
    memory_mb = _SHARED_MB if options.share else whole_mb
    if task.cpus is not None:
        per_core = min((node.cpu_mhz / node.cores for node in large if node.cores), default=1000.0)
        mhz = max(1, round(task.cpus * per_core))
    if task.memory_bytes is not None:
        memory_mb = max(10, math.ceil(task.memory_bytes / 2**20))
    found: dict[str, Any] = {"CPU": mhz, "MemoryMB": memory_mb}
    if cores and task.cpus is not None:  # Nomad takes only one of the two
        found = {"Cores": math.ceil(task.cpus), "MemoryMB": memory_mb}
    if task.gpus:
        found["Devices"] = [_device(options.gpu, task.gpus)]
    return found


def _device(gpu: Gpu, count: int) -> dict[str, Any]:
    device: dict[str, Any] = {"Name": gpu.device, "Count": count}
    constraints = _constraints(gpu.constraints)
    if gpu.memory:
        constraints.append({"LTarget": "${device.attr.memory}", "Operand": ">=", "RTarget": gpu.memory})
    if gpu.model:
        constraints.append({"LTarget": "${device.model}", "Operand": "regexp", "RTarget": gpu.model})
    if constraints:
        device["Constraints"] = constraints
    if gpu.affinities:
        device["Affinities"] = _affinities(gpu.affinities)
    return device


def with_payload(job: Mapping[str, Any], base64_text: str) -> dict[str, Any]:
    """The job with the packed files in it."""
    filled: dict[str, Any] = copy.deepcopy(dict(job))
    for group in filled["TaskGroups"]:
        for block in group["Tasks"][0]["Templates"]:
            if block["DestPath"] == PAYLOAD_PATH:
                block["EmbeddedTmpl"] = f'{block["LeftDelim"]} base64Decode "{base64_text}" {block["RightDelim"]}'
    return filled
