"""What is said about the parts of a Nomad job that a Yurt job has no place for."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from yurt.convert.converted import Note
from yurt.convert.nomad.durations import seconds
from yurt.convert.nomad.parts import Part, empty, unread

#: What Nomad itself keeps about a job that it runs; `nomad job inspect` prints it.
_STATE: Final = frozenset(
    {
        "status", "status_description", "stable", "version", "submit_time", "create_index", "modify_index",
        "job_modify_index", "dispatched", "dispatch_idempotency_token", "parent_id", "payload", "version_tag",
        "nomad_token_id",
    }
)  # fmt: skip

#: What Nomad puts there by itself, without what is zero or empty; a duration is in seconds.
_DEFAULTS: Final[dict[str, tuple[Any, ...]]] = {
    "priority": (50,),
    "region": ("global",),
    "namespace": ("default",),
    "node_pool": ("default",),
    "datacenters": (["*"],),
    "consul": ({"cluster": "default"},),
    "vault": ({"cluster": "default"},),
    "ephemeral_disk": ({"size": 300},),
    "logs": ({"max_file_size": 10, "max_files": 10},),
    "identity": ({"audience": ["nomadproject.io"], "name": "default"},),
    "update": (
        {
            "stagger": 30, "max_parallel": 1, "health_check": "checks", "min_healthy_time": 10,
            "healthy_deadline": 300, "progress_deadline": 600,
        },
    ),
    "migrate": (
        {"max_parallel": 1, "health_check": "checks", "min_healthy_time": 10, "healthy_deadline": 300},
    ),
    "kill_signal": ("SIGTERM",),  # not Nomad's default everywhere, and the signal that Yurt sends
    "interval": (86400,),
    "delay": (15, 5, 30),
    "delay_function": ("constant", "exponential"),
    "max_delay": (3600,),
    "mode": ("fail",),
}  # fmt: skip

_PLACED: Final = "does not hold for all roles, and an option of the Nomad engine does: left out"
_NO_OPTION: Final = "is left out: the Nomad engine has no option for it"
_MOUNTED: Final = "is left out: what it brings must be there where the tasks run"
_NO_SECRETS: Final = "is left out: give secrets with `yurt run --env NAME`"
_KEPT_RUNNING: Final = "is left out: it is about jobs that run for ever"
_SCHEDULED: Final = "is left out: Yurt starts a run when it is told to"
_LOST: Final = "is left out: Yurt finds out by itself that a task is lost"
_WAITED: Final = "is left out: Yurt chooses how long it waits"
_SAID: Final = {
    **dict.fromkeys(("datacenters", "region", "namespace", "node_pool", "priority", "constraint", "affinity"), _PLACED),
    **dict.fromkeys(("spread", "multiregion", "ephemeral_disk", "numa", "ui"), _NO_OPTION),
    **dict.fromkeys(("volume", "volume_mount", "csi_plugin", "volumes", "mount", "mounts"), _MOUNTED),
    **dict.fromkeys(("vault", "consul", "identity", "secret", "consul_token", "vault_token"), _NO_SECRETS),
    **dict.fromkeys(("update", "migrate"), _KEPT_RUNNING),
    **dict.fromkeys(("periodic", "parameterized", "dispatch_payload", "schedule"), _SCHEDULED),
    **dict.fromkeys(("disconnect", "stop_after_client_disconnect", "max_client_disconnect"), _LOST),
    **dict.fromkeys(("delay", "delay_function", "max_delay"), _WAITED),
    "device": "is left out: the count of GPUs alone is carried",
    "all_at_once": "is left out: a run's training starts when all of its tasks are there",
    "scaling": "is left out: a run keeps its number of tasks",
    "network": "is left out: Yurt gives every task its port",
    "service": "is left out: Yurt's tasks find each other without services",
    "artifact": "is left out: put what it fetches beside the job file, and it travels with the job",
    "template": "is left out: Nomad wrote this file, and Yurt writes none but TF_CONFIG",
    "meta": "is left out: tasks saw it as NOMAD_META_..., and env does the same",
    "logs": "is left out: Yurt keeps the whole output of a run",
    "user": "is left out: tasks run as whoever starts them",
    "kill_signal": "is left out: Yurt asks a task to end with SIGTERM",
    "shutdown_delay": "is left out: Yurt asks a task to end at once",
    "memory_max": "is left out: `memory` alone is carried",
    "interval": "is left out: max_restarts is for the whole run",
    "mode": "is left out: when max_restarts is used up, the run has failed",
}
#: Blocks in which a key means something else than elsewhere.
_AFFAIRS: Final = frozenset({"device", "ephemeral_disk"})
_OF_DRIVER: Final = "is left out: it is an option of Nomad's driver, and not the same for all roles"
_OTHER: Final = "is left out: a Yurt job has nothing like it"
_DURATIONS: Final = frozenset(
    {"stagger", "min_healthy_time", "healthy_deadline", "progress_deadline", "interval", "delay", "max_delay"}
)


def leftovers(job: Part) -> Iterator[Note]:
    """A note for every part that no reader took and that says something other than Nomad's own default."""
    for path, part in unread(job):
        name = path.rpartition(".")[2].partition(" as ")[0]
        value = _meaning(part.look(), name)
        if empty(value) or value in (False, 0) or (name in _STATE and "." not in path):
            continue
        if value in _DEFAULTS.get(name, ()):
            continue
        yield part.note(f"{_label(part)}{_said(path.split('.'))}")


def _said(path: list[str]) -> str:
    """The sentence for the innermost part of the path that has one, or for what it is an affair of."""
    for name in (*(name for name in path if name in _AFFAIRS), *reversed(path)):
        if said := _SAID.get(name):
            return said
        if name == "config":
            return _OF_DRIVER
    return _OTHER


def is_default(name: str, value: Any) -> bool:
    """Whether a plain value is what Nomad puts there by itself."""
    return _meaning(value, name) in _DEFAULTS.get(name, ())


def _label(part: Part) -> str:
    """What tells a block from others of its kind: its name, or the file that it makes."""
    named = next((inner for key in ("name", "destination", "source") if (inner := part.peek(key))), None)
    return f"{named.value} " if named is not None and isinstance(named.value, str) else ""


def _meaning(value: Any, name: str) -> Any:
    """A value without what is zero or empty in it; durations in seconds."""
    if isinstance(value, dict):
        kept = {key: _meaning(inner, key) for key, inner in value.items()}
        return {key: inner for key, inner in kept.items() if not empty(inner) and inner not in (False, 0)}
    if name in _DURATIONS:
        return seconds(value)
    return value
