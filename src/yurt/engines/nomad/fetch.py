"""Copies a folder of an allocation to this machine: the model of a run that nobody published.

Nomad keeps what an allocation has written until it collects the allocation: by default 4 hours after the end of the
job, and sooner where a node has more than 50 of them or lacks room (1.0.18).
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from yurt.engines.nomad.address import NomadError
from yurt.engines.nomad.client import NomadClient
from yurt.errors import EngineError

#: A file whose stream ends early is asked for again from where it ended, so often without a new byte.
_TRIES: Final = 3


def model_path(task: str, saves_to: str | None) -> str:
    """Where a task's model is in its allocation; `task` is Nomad's own task, the agent."""
    return f"{task}/local/work/{saves_to}" if saves_to else f"{task}/local/model"


def fetch_folder(client: NomadClient, allocation: Mapping[str, Any], path: str, target: Path) -> None:
    """Make `target` the copy of a folder, whole or not at all.

    `allocation` is one of the answer of ``/v1/job/:id/allocations``. Raises EngineError: it is not to be had, or there
    is no room for it here.
    """
    alloc_id = str(allocation["ID"])
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        for name, size in _files(client, alloc_id, path):
            _copy(client, alloc_id, f"{path}/{name}", size, part / name)
        shutil.rmtree(target, ignore_errors=True)
        part.replace(target)
    except NomadError as error:
        where = f"{allocation.get('NodeName')}, in {path} of the allocation {alloc_id[:8]}"
        raise EngineError(f"the model is on {where}, and cannot be fetched: {error}", hint=error.hint) from error
    except OSError as error:
        raise EngineError(f"the model cannot be fetched to {target}: {error}") from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _files(client: NomadClient, alloc_id: str, path: str, below: str = "") -> Iterator[tuple[str, int]]:
    """Every file below a folder, by its path from there and its size in bytes; symbolic links are followed."""
    for each in client.folder(alloc_id, f"{path}/{below}"):
        name = f"{below}{each['Name']}"
        if each["IsDir"]:
            yield from _files(client, alloc_id, path, f"{name}/")
        else:
            yield name, int(each["Size"])


def _copy(client: NomadClient, alloc_id: str, path: str, size: int, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    tries = _TRIES
    with target.open("wb") as file:
        while file.tell() < size:
            before = file.tell()
            for data in client.stream(alloc_id, path, before):
                file.write(data)
            tries = _TRIES if file.tell() > before else tries - 1
            if tries == 0:
                raise NomadError(f"{path} ends after {file.tell():,} of {size:,} bytes")
    if target.stat().st_size != size:
        raise NomadError(f"{path} grows: it had {size:,} bytes")
