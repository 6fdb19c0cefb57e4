"""A Nomad job in the HTTP API's JSON, as `Part`: what ``nomad job run -output`` and ``nomad job inspect`` print."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from yurt.convert.nomad.keys import FREE, hcl_name
from yurt.convert.nomad.parts import Part, within
from yurt.convert.source import Source
from yurt.errors import UsageError

#: Lists of what is named in a place: a job's name, then the group's, then the task's.
_PLACES: Final = frozenset({"TaskGroups", "Tasks"})


def job_from_json(source: Source) -> Part:
    """The one job of a text. Raises `UsageError` where it is not one."""
    data = json.loads(source.text)
    job = data.get("Job", data)
    if not isinstance(job, Mapping):
        raise UsageError(f"{source.file}: Job must be a mapping, as `nomad job run -output` prints it")
    name = job.get("ID") or job.get("Name")
    part = _mapping(job, "", str(name) if name else "", source.file)
    for key, value in data.items() if job is not data else ():
        if key != "Job":  # such as EnforceIndex, which is about the submission
            part.value[f"submission {key}"] = Part(value, key, "", source.file)
    return part


def _mapping(data: Mapping[str, Any], key: str, place: str, file: str, *, free: bool = False) -> Part:
    parts: dict[str, Part] = {}
    inside = within(place, key)
    for name, value in data.items():
        own = name if free else hcl_name(name)
        if own in parts:  # such as the two kinds of ports
            own = f"{own} as {name}"
        parts[own] = _part(value, name, inside, file, free=free or own in FREE)
    return Part(parts, key, place, file)


def _part(value: Any, key: str, place: str, file: str, *, free: bool) -> Part:
    if isinstance(value, Mapping):
        if key in _PLACES and value.get("Name"):
            place, key = (f"{place}/{value['Name']}" if place else str(value["Name"])), ""
        return _mapping(value, key, place, file, free=free)
    if isinstance(value, list):
        return Part([_part(item, key, place, file, free=free) for item in value], key, place, file)
    return Part(value, key, place, file)
