"""Where and how Nomad runs the tasks, as options of Yurt's Nomad engine: ``engines: {nomad: {...}}``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from yurt.convert.converted import Note
from yurt.convert.nomad.leftovers import is_default
from yurt.convert.nomad.parts import Part, empty
from yurt.convert.nomad.roles import Seat

_OF_JOB: Final = ("datacenters", "region", "namespace", "node_pool", "priority", "meta")
#: Drivers that the engine knows; raw_exec is its own choice.
_DRIVERS: Final = ("raw_exec", "exec", "docker")
_DISTINCT: Final = "distinct_hosts"
#: Constraints that Nomad adds by itself for signals, services and secrets (seen on 1.0.18; read of later versions).
_NOMADS_OWN: Final = frozenset(
    {
        ("${attr.os.signals}", "set_contains"),
        ("${attr.consul.version}", "semver"),
        ("${attr.vault.version}", "semver"),
        ("${attr.nomad.service_discovery}", "="),
    }
)
#: Nomad's own size of a group's disk, and the smallest that the engine's option takes, in MB.
_DISK_MB: Final = 300
_SMALLEST_DISK_MB: Final = 50
#: The keys of a rule, and the operators that HCL may write as a key: ``version = ">= 2"``.
_RULE_KEYS: Final = ("attribute", "operator", "value", "weight")
_RULE_WORDS: Final = (
    "version",
    "semver",
    "regexp",
    "set_contains",
    "set_contains_all",
    "set_contains_any",
    "distinct_hosts",
    "distinct_property",
)
_VOLUME_KEYS: Final = ("name", "type", "source", "read_only")
_MOUNT_KEYS: Final = ("volume", "destination", "read_only")


def options_of(jobs: Sequence[Part], seats: Sequence[Seat], tasks: int, notes: list[Note]) -> dict[str, Any]:
    """The options; what differs between roles, and what the engine has no option for, is left to be told.

    `tasks` is how many tasks the job has.
    """
    options: dict[str, Any] = {}
    drivers = list(dict.fromkeys(seat.task.look().get("driver") for seat in seats))
    if len(drivers) > 1 or drivers[0] not in _DRIVERS:
        named = ", ".join(map(str, drivers))
        notes.append(
            seats[0].task.note(f"{named}: the Nomad engine has one driver for all, of {', '.join(_DRIVERS)}", "driver")
        )
    elif drivers[0] != _DRIVERS[0]:
        options["driver"] = drivers[0]
    for key in _OF_JOB:
        _from_job(key, jobs, options, notes)
    if not _spread_out(jobs) and tasks > 1:
        options["share"] = True
    for key, option in (("constraint", "constraints"), ("affinity", "affinities")):
        if rules := _rules(key, seats):
            options[option] = rules
    if disk_mb := _disk_mb(seats):
        options["disk_mb"] = disk_mb
    if volumes := _volumes(seats):
        options["volumes"] = volumes
    if config := _config(seats):
        options["config"] = config
    return options


def _from_job(key: str, jobs: Sequence[Part], options: dict[str, Any], notes: list[Note]) -> None:
    for job in jobs:
        part = job.peek(key)
        if part is None or empty(part.look()) or is_default(key, part.look()):
            continue
        value = part.plain()
        value = {name: str(inner) for name, inner in value.items()} if key == "meta" else value
        if options.setdefault(key, value) != value:
            notes.append(part.note(f"differs from that of {jobs[0].file}, which is carried"))


def _spread_out(jobs: Sequence[Part]) -> bool:
    """Whether all jobs give each task a node of its own, as the Nomad engine does if not told otherwise."""
    found = [[rule for rule in _blocks(job, "constraint") if _rule(rule)["operator"] == _DISTINCT] for job in jobs]
    for rules in found:
        for rule in rules:
            _take(rule, *_RULE_KEYS, *_RULE_WORDS)
    return all(found)


def _rules(key: str, seats: Sequence[Seat]) -> list[dict[str, Any]]:
    """The constraints or affinities that hold for every role."""
    by_seat = [
        [(_rule(block), block) for part in (seat.job, seat.group, seat.task) for block in _blocks(part, key)]
        for seat in seats
    ]
    shared: list[dict[str, Any]] = []
    for rule, _ in by_seat[0]:
        everywhere = all(any(rule == other for other, _ in blocks) for blocks in by_seat)
        if everywhere and rule["operator"] != _DISTINCT and rule not in shared and not _is_nomads(rule):
            shared.append(rule)
    for blocks in by_seat:
        for rule, block in blocks:
            if rule in shared or _is_nomads(rule):
                _take(block, *_RULE_KEYS, *_RULE_WORDS)
    return shared


def _is_nomads(rule: dict[str, Any]) -> bool:
    return (rule.get("attribute"), rule["operator"]) in _NOMADS_OWN


def _blocks(part: Part, key: str) -> list[Part]:
    """The blocks under a key, the list itself accounted for and the blocks not."""
    inner = part.get(key)
    if inner is None:
        return []
    if isinstance(inner.value, list):
        return [item for item in inner.value if isinstance(item.value, dict)]
    inner.taken = False
    return [inner] if isinstance(inner.value, dict) else []


def _take(block: Part, *keys: str) -> None:
    """Account for a block and these keys of it: what else is in it is told."""
    block.taken = True
    for key in keys:
        block.get(key)


def _rule(block: Part) -> dict[str, Any]:
    """A constraint or an affinity as the engine's option has it; HCL may write ``version = ">= 2"`` for two keys."""
    written = {key: value for key, value in block.look().items() if value not in (None, "")}
    rule = {key: written[key] for key in _RULE_KEYS if key in written}
    for key in _RULE_WORDS:
        if key in written:
            rule["operator"] = key
            rule["attribute" if key == "distinct_property" else "value"] = written[key]
    rule.setdefault("operator", "=")
    return {key: rule[key] if key == "weight" else _text(rule[key]) for key in _RULE_KEYS if key in rule}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _disk_mb(seats: Sequence[Seat]) -> int | None:
    """The size of the groups' disks in MB, where all have the same, and it is not Nomad's own 300."""
    disks = [seat.group.peek("ephemeral_disk") for seat in seats]
    sizes = [None if disk is None else disk.look().get("size") for disk in disks]
    size = sizes[0]
    if (
        not isinstance(size, int)
        or size == _DISK_MB
        or size < _SMALLEST_DISK_MB
        or any(other != size for other in sizes)
    ):
        return None
    for seat in seats:
        if disk := seat.group.get("ephemeral_disk"):
            disk.get("size")
    return size


def _volumes(seats: Sequence[Seat]) -> dict[str, dict[str, Any]]:
    """Host volumes that are mounted at the same path in every role."""
    by_seat = [dict(_mounted(seat)) for seat in seats]
    first = by_seat[0] if by_seat else {}
    shared = {name: value for name, value in first.items() if all(other.get(name) == value for other in by_seat)}
    for seat in seats:
        for part in _volume_parts(seat):
            if part.look().get("name") in shared:
                _take(part, *_VOLUME_KEYS)
        for part in _blocks(seat.task, "volume_mount"):
            if part.look().get("volume") in shared:
                _take(part, *_MOUNT_KEYS)
    return shared


def _mounted(seat: Seat) -> Iterable[tuple[str, dict[str, Any]]]:
    mounts = {mount.look().get("volume"): mount.look() for mount in _blocks(seat.task, "volume_mount")}
    for part in _volume_parts(seat):
        volume = part.look()
        mount = mounts.get(volume.get("name"))
        if volume.get("type") == "host" and mount and isinstance(mount.get("destination"), str):
            option = {"source": volume.get("source") or volume["name"], "path": mount["destination"]}
            read_only = volume.get("read_only") is True or mount.get("read_only") is True
            yield str(volume["name"]), {**option, "read_only": True} if read_only else option


def _volume_parts(seat: Seat) -> list[Part]:
    """The volumes of a group: a list in HCL, a mapping by name in JSON."""
    part = seat.group.get("volume")
    if part is None:
        return []
    items = part.value.values() if isinstance(part.value, dict) else part.value if isinstance(part.value, list) else ()
    return [item for item in items if isinstance(item.value, dict)]


def _config(seats: Sequence[Seat]) -> dict[str, Any]:
    """What the driver's config says beside the command, where it is the same for every role."""
    found: list[dict[str, Part]] = []
    for seat in seats:
        config = seat.task.peek("config")
        parts = config.value if config is not None and isinstance(config.value, dict) else {}
        found.append({key: part for key, part in parts.items() if not part.taken and not empty(part.look())})
    shared = {
        key: part.look()
        for key, part in found[0].items()
        if all(key in other and other[key].look() == part.look() for other in found)
    }
    shared = {
        key: value for key, value in shared.items() if value not in (False, 0) and (key, value) not in _ENGINE_OWN
    }
    for parts in found:
        for key, part in parts.items():
            if key in shared or (key, part.look()) in _ENGINE_OWN:
                part.plain()
    return shared


#: What the engine writes by itself.
_ENGINE_OWN: Final = (("network_mode", "host"),)
