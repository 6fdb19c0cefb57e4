"""A run's specification as one value of a key-value store: a role once and not each task, and never a secret."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from yurt.contract.redact import redacted
from yurt.contract.spec import RunSpec, TaskSpec

#: JSON up to this size is stored as it is, so that `consul kv get` shows it; longer text is compressed.
_PLAIN_BYTES: Final = 32 * 1024
#: Room for one value with all that comes with it in a transaction (Consul 1.8.7: 512 KiB of base64).
LARGEST_BYTES: Final = 380_000


def packed(value: Any) -> bytes:
    """JSON values as bytes: text, or zlib where it is long."""
    text = json.dumps(value, separators=(",", ":")).encode()
    return text if len(text) <= _PLAIN_BYTES else zlib.compress(text)


def unpacked(data: bytes) -> Any:
    """Back from `packed`. Raises ValueError for anything else."""
    try:
        return json.loads(data if data[:1] in (b"{", b"[") else zlib.decompress(data))
    except zlib.error as error:
        raise ValueError(f"neither JSON nor zlib: {error}") from error


def pack_spec(spec: RunSpec) -> bytes:
    """The run with the values of secret variables hidden; without commands and variables where it would be too large.

    What needs the lost parts is the agents' own copy, which comes with them.
    """
    whole = packed(_value(spec, outline=False))
    return whole if len(whole) <= LARGEST_BYTES else packed(_value(spec, outline=True))


def unpack_spec(data: bytes) -> RunSpec:
    """Back from `pack_spec`. Raises ValueError, KeyError or TypeError for anything else."""
    value = unpacked(data)
    tasks = [
        {**{key: each for key, each in group.items() if key not in ("first", "count")}, "index": index}
        for group in value["tasks"]
        for index in range(group["first"], group["first"] + group["count"])
    ]
    return RunSpec.from_json({**value, "tasks": tasks})


def head(spec: RunSpec) -> dict[str, Any]:
    """The run as JSON values without its tasks."""
    return replace(spec, tasks=()).to_json()


def _value(spec: RunSpec, *, outline: bool) -> dict[str, Any]:
    return {**head(spec), "tasks": [_group(first, count, outline=outline) for first, count in _groups(spec)]}


def _groups(spec: RunSpec) -> Iterator[tuple[TaskSpec, int]]:
    """Stretches of tasks that differ in their index alone: the first, and how many."""
    first: TaskSpec | None = None
    count = 0
    for task in spec.tasks:
        if first is not None and task == replace(first, index=first.index + count):
            count += 1
            continue
        if first is not None:
            yield first, count
        first, count = task, 1
    if first is not None:
        yield first, count


def _group(task: TaskSpec, count: int, *, outline: bool) -> dict[str, Any]:
    command = None if task.command is None else [] if outline else list(task.command)
    return {
        "role": task.role,
        "first": task.index,
        "count": count,
        "command": command,
        "env": {} if outline else redacted(task.env),
        "cpus": task.cpus,
        "memory_bytes": task.memory_bytes,
        "gpus": task.gpus,
    }
