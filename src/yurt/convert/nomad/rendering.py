"""From a Yurt job to a Nomad job that runs without Yurt: the HTTP API's form, as plain data."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from yurt.convert.converted import Note
from yurt.convert.nomad import tf_config
from yurt.convert.nomad.durations import NANOSECONDS
from yurt.convert.nomad.tasks import counted_cpus
from yurt.convert.standard_server import STANDARD_SERVER
from yurt.job import Job, RestartPolicy, Role, RoleName, Strategy, SuccessRule
from yurt.job.frozen import thaw
from yurt.job.kinds import KerasChoice

_MIB: Final = 1024**2
#: From Nomad 1.1.15, 1.2.9 and 1.3.2 on a client's own max_kill_timeout ends a longer wait.
_LONGEST_GRACE_S: Final = 30
_MANY: Final = frozenset({Strategy.MULTI_WORKER_MIRRORED, Strategy.PARAMETER_SERVER})
#: The options of the Nomad engine that a plain Nomad job can say.
_USED: Final = frozenset(
    {
        "driver", "datacenters", "region", "namespace", "node_pool", "priority", "share", "constraints", "affinities",
        "volumes", "meta", "config", "disk_mb",
    }
)  # fmt: skip
#: The text of a variable that Nomad would change: it has no escape there.
_FILLED: Final = "${"


@dataclass(frozen=True, slots=True)
class NomadJob:
    """A job as ``nomad job run -json`` takes it, and what it does not do that Yurt did."""

    body: Mapping[str, Any]
    notes: tuple[Note, ...]


def render(job: Job, mhz_per_cpu: int) -> NomadJob:
    """The same roles as a plain Nomad job; pure: the same job gives the same data."""
    options = thaw(job.engines.get("nomad", {}))
    body = {
        "ID": job.name,
        "Name": job.name,
        "Type": "batch",
        **_placement(options, many=_many(job)),
        "TaskGroups": [_group(job, name, role, options, mhz_per_cpu) for name, role in job.roles.items()],
    }
    return NomadJob({"Job": body}, tuple(_notes(job, mhz_per_cpu)))


def _group(job: Job, name: RoleName, role: Role, options: Mapping[str, Any], mhz_per_cpu: int) -> dict[str, Any]:
    attempts = 0 if job.restart is RestartPolicy.NEVER else job.max_restarts
    return {
        "Name": str(name),
        "Count": role.replicas,
        "RestartPolicy": {
            "Attempts": attempts,
            "Interval": 86_400 * NANOSECONDS,
            "Delay": 5 * NANOSECONDS,
            "Mode": "fail",
        },
        "ReschedulePolicy": {"Attempts": 0, "Unlimited": False},
        "Networks": [{"Mode": "host", "DynamicPorts": [{"Label": "tf"}]}],
        "Services": [
            {
                "Name": tf_config.service_name(job.name, name),
                "PortLabel": "tf",
                "Tags": ["${NOMAD_ALLOC_INDEX}"],
            }
        ],
        "Volumes": {
            volume: {"Name": volume, "Type": "host", "Source": how["source"], "ReadOnly": how.get("read_only", False)}
            for volume, how in options.get("volumes", {}).items()
        },
        **({"EphemeralDisk": {"SizeMB": options["disk_mb"]}} if "disk_mb" in options else {}),
        "Tasks": [_task(job, name, role, options, mhz_per_cpu)],
    }


def _task(job: Job, name: RoleName, role: Role, options: Mapping[str, Any], mhz_per_cpu: int) -> dict[str, Any]:
    env = dict(job.env_for(name))
    by_words = {key: value for key, value in env.items() if _FILLED in value}
    words = job.command_for(name) or STANDARD_SERVER
    config: dict[str, Any] = {
        "command": tf_config.SHELL,
        "args": [_for_driver(word) for word in tf_config.with_wait(words, by_words)],
    }
    driver = _driver(job, options)
    if driver == "docker":
        config = {"image": job.image, "network_mode": "host", **config}
    counts = [(str(other), job.roles[other].replicas) for other in job.roles if other is not RoleName.EVALUATOR]
    if name is RoleName.EVALUATOR:  # its own TF_CONFIG lists itself, as TensorFlow wants it
        counts.append((str(name), role.replicas))
    return {
        "Name": str(name),
        "Driver": driver,
        "Config": {**config, **options.get("config", {})},
        "Env": {key: value for key, value in env.items() if key not in by_words},
        "Templates": [
            {
                "EmbeddedTmpl": tf_config.template(job.name, counts, name),
                "DestPath": tf_config.FILE,
                "ChangeMode": "noop",
            }
        ],
        "Resources": _resources(role, mhz_per_cpu),
        "VolumeMounts": [
            {"Volume": volume, "Destination": how["path"], "ReadOnly": how.get("read_only", False)}
            for volume, how in options.get("volumes", {}).items()
        ],
        "KillSignal": "SIGTERM",
        "KillTimeout": round(job.grace_s * NANOSECONDS),
    }


def _driver(job: Job, options: Mapping[str, Any]) -> str:
    chosen: str = options.get("driver") or "docker"
    return chosen if job.image or chosen == "exec" else "raw_exec"


def _many(job: Job) -> bool:
    return sum(role.replicas for role in job.roles.values()) > 1


def _placement(options: Mapping[str, Any], *, many: bool) -> dict[str, Any]:
    """Where the tasks may be, by the options of Yurt's Nomad engine."""
    constraints = [_rule(rule) for rule in options.get("constraints", ())]
    if many and not options.get("share"):
        constraints.append({"Operand": "distinct_hosts", "RTarget": "true"})
    placed = {
        "Datacenters": list(options.get("datacenters", ("*",))),
        "Region": options.get("region"),
        "Namespace": options.get("namespace"),
        "NodePool": options.get("node_pool"),
        "Priority": options.get("priority"),
        "Meta": options.get("meta"),
        "Constraints": constraints,
        "Affinities": [{**_rule(rule), "Weight": rule.get("weight", 50)} for rule in options.get("affinities", ())],
    }
    return {key: value for key, value in placed.items() if value}


def _rule(rule: Mapping[str, Any]) -> dict[str, Any]:
    keys = {"attribute": "LTarget", "operator": "Operand", "value": "RTarget"}
    return {"Operand": "=", **{name: rule[key] for key, name in keys.items() if key in rule}}


def _for_driver(text: str) -> str:
    """The text for a driver's config, which is a template of Nomad's when the task starts (seen on 1.0.18, 1.6.1)."""
    return re.sub(r"([$%])\{", r"\1\1{", text)


def _resources(role: Role, mhz_per_cpu: int) -> dict[str, Any]:
    resources: dict[str, Any] = {}
    if role.cpus is not None:
        resources["CPU"] = max(1, round(role.cpus * mhz_per_cpu))
    if role.memory_bytes is not None:
        resources["MemoryMB"] = max(10, math.ceil(role.memory_bytes / _MIB))
    if role.gpus:
        resources["Devices"] = [{"Name": "nvidia/gpu", "Count": role.gpus}]
    return resources


def _notes(job: Job, mhz_per_cpu: int) -> Iterator[Note]:
    """What the Nomad job does not do, or not in the same way, by the keys of the Yurt job."""
    options = job.engines.get("nomad", {})
    many = _many(job)
    if "datacenters" not in options:
        yield Note(
            "datacenters", 'are ["*"], all of them, which Nomad understands from 1.5 on: before that, write yours'
        )
    if many and not options.get("share"):
        yield Note("constraint", "each task gets a node of its own, as on Yurt's Nomad engine (share: true lifts that)")
    where = "into the image" if _driver(job, options) == "docker" else "on every node, at the same path"
    yield Note("files", f"do not travel with a Nomad job: put them {where}, and name the script by its whole path")
    for name, role in job.roles.items():
        missing = [given for given, value in (("100 MHz", role.cpus), ("300 MB", role.memory_bytes)) if value is None]
        if missing:
            yield Note(f"roles.{name}", f"does not say what it needs, and Nomad gives it {' and '.join(missing)}")
        if role.cpus is not None:
            mhz = max(1, round(role.cpus * mhz_per_cpu))
            taken = f"{counted_cpus(role.cpus)} taken as {mhz} MHz, at {mhz_per_cpu} MHz each (--mhz changes that)"
            yield Note(f"roles.{name}.cpus", taken)
    if job.output or job.saves_to:
        yield Note("output", "nothing publishes the model, and the script has no YURT_MODEL_DIR to save to")
    if many:
        yield Note("start_deadline", "tasks wait for one another without end")
    if job.deadline_s is not None:
        yield Note("deadline", "a Nomad job has none")
    if job.restart is not RestartPolicy.NEVER:
        alone = ", and alone: the others go on with the peers that they had" if many else ""
        yield Note(
            "restart", f"Nomad starts each task again up to {job.max_restarts} times whatever its exit code{alone}"
        )
    if RoleName.PS in job.roles or RoleName.EVALUATOR in job.roles:
        yield Note("roles", f"nothing ends the others when the chief has finished: nomad job stop {job.name}")
    if job.success is not SuccessRule.CHIEF:
        yield Note("success", "a Nomad job has no verdict of its own: look at each allocation")
    if job.strategy in _MANY and job.keras is not KerasChoice.OFF:
        yield Note("keras", "the mends for Keras 3 stay behind: see docs/keras.md for what fails without them")
    if job.strategy not in (Strategy.NONE, *_MANY):
        yield Note("strategy", f"the script chooses {job.strategy} by itself")
    if job.grace_s > _LONGEST_GRACE_S:
        yield Note("grace", f"Nomad's clients end a task after {_LONGEST_GRACE_S} s, unless max_kill_timeout says more")
    for engine, given in job.engines.items():
        unused = [key for key in given if engine != "nomad" or key not in _USED]
        if unused:
            yield Note(f"engines.{engine}", f"{', '.join(unused)}: Yurt's own, left out")
