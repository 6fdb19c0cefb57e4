"""Checkpoint files: one file each, whole or not there at all. Standard library and numpy.

A folder holds ``step-0000000117.npz`` (within an epoch), ``step-0000000125-epoch-0005.npz`` (after the fifth epoch)
and ``step-0000000500-final.npz`` (training has ended). Each is a numpy archive: an array a variable, and ``metadata``,
a text of JSON. No pickle: ``numpy.load(path)`` reads it anywhere. What numpy has no dtype for (bfloat16) is there as
its raw bits, and ``metadata["dtypes"]`` says what it is.

A file is written beside, flushed to the disk and renamed, so a reader never sees half of one. A file that was broken
afterwards (a full disk, a copy that stopped) is not listed.
"""

from __future__ import annotations

import json
import os
import re
import time
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

import numpy as np

from yurt.training.errors import TrainingError

#: So many are kept of those within epochs, and of those at the end of epochs (the final one among them).
WITHIN_EPOCHS: Final = 2
EPOCH_ENDS: Final = 5
FORMAT: Final = 1

_METADATA = "metadata"
_NAME = re.compile(r"step-\d{10,}(-epoch-\d{4,}|-final)?\.npz")
#: What reading a broken archive raises.
_BROKEN = (OSError, EOFError, ValueError, KeyError, TypeError, zipfile.BadZipFile, zlib.error, NotImplementedError)


@dataclass(frozen=True, slots=True)
class Kept:
    """A checkpoint: training goes on `step` steps into `epoch`, both from 0, after `steps_done` steps in all.

    `boundary`: written at an epoch's end, so `step` is 0 and `epoch` the next one. `final`: training ended with it.
    `at` is when it was written, in seconds since 1970.
    """

    path: Path
    epoch: int
    step: int
    steps_done: int
    final: bool
    boundary: bool
    at: float


def listed(folder: Path | str) -> list[Kept]:
    """The whole checkpoints of a folder, oldest first; none where there is no such folder."""
    found = []
    for path in _files(Path(folder)):
        try:
            with zipfile.ZipFile(path) as archive:
                found.append(_kept(path, _metadata(archive)))
        except _BROKEN:
            continue
    return sorted(found, key=_order)


def broken(folder: Path | str) -> list[Path]:
    """Files with a checkpoint's name that are none."""
    whole = {kept.path for kept in listed(folder)}
    return [path for path in _files(Path(folder)) if path not in whole]


def read(source: Path | str | IO[bytes]) -> tuple[dict[str, Any], dict[str, np.ndarray[Any, Any]]]:
    """Metadata, and variables by name. Raises TrainingError for a file that is broken, naming it."""
    try:
        with zipfile.ZipFile(source) as archive:
            metadata = _metadata(archive)
            names = [name.removesuffix(".npy") for name in archive.namelist()]
            return metadata, {name: _array(archive, name) for name in names if name != _METADATA}
    except FileNotFoundError as error:
        raise TrainingError(f"{source}: there is no such checkpoint") from error
    except _BROKEN as error:
        name = source if isinstance(source, (str, os.PathLike)) else "a checkpoint"
        raise TrainingError(f"{name}: broken, or no checkpoint: {error}") from error


def write(
    folder: Path | str,
    *,
    epoch: int,
    step: int,
    steps_done: int,
    variables: Mapping[str, np.ndarray[Any, Any]],
    metadata: Mapping[str, Any] | None = None,
    boundary: bool = False,
    final: bool = False,
) -> Kept:
    """Write a checkpoint and remove those that are not kept any longer. Raises OSError; what was there then stays."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    ending = "-final" if final else f"-epoch-{epoch:04}" if boundary else ""
    path = folder / f"step-{steps_done:010}{ending}.npz"
    position = {"epoch": epoch, "step": step, "steps_done": steps_done, "boundary": boundary, "final": final}
    whole = {**(metadata or {}), **position, "format": FORMAT, "at": time.time(), "dtypes": {}}
    arrays = {}
    for name, value in variables.items():
        arrays[name] = _plain(np.asarray(value))
        if arrays[name] is not value and arrays[name].dtype != value.dtype:
            whole["dtypes"][name] = value.dtype.name
    part = folder / f".{path.name}.{os.uname().nodename}-{os.getpid()}.part"
    try:
        with part.open("wb") as file:
            with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
                for name, array in {_METADATA: np.array(json.dumps(whole)), **arrays}.items():
                    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                        np.lib.format.write_array(member, array, allow_pickle=False)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
        _sync(folder)
    finally:
        part.unlink(missing_ok=True)
    _prune(folder)
    return _kept(path, whole)


def real(value: np.ndarray[Any, Any], dtype: str | None) -> np.ndarray[Any, Any]:
    """An array as it was before it was written; `dtype` is what the metadata say of it."""
    if dtype is None:
        return value
    import ml_dtypes  # comes with TensorFlow: who has such variables has it

    return value.view(getattr(ml_dtypes, dtype))


def _files(folder: Path) -> list[Path]:
    if not folder.is_dir():
        return []
    return sorted(path for path in folder.iterdir() if _NAME.fullmatch(path.name))


def _order(kept: Kept) -> tuple[int, bool, bool]:
    return kept.steps_done, kept.boundary, kept.final


def _kept(path: Path, metadata: Mapping[str, Any]) -> Kept:
    return Kept(
        path,
        int(metadata["epoch"]),
        int(metadata["step"]),
        int(metadata["steps_done"]),
        bool(metadata["final"]),
        bool(metadata["boundary"]),
        float(metadata["at"]),
    )


def _metadata(archive: zipfile.ZipFile) -> dict[str, Any]:
    metadata = json.loads(str(_array(archive, _METADATA)[()]))
    if metadata["format"] > FORMAT:
        raise ValueError(f"of format {metadata['format']}, of which this version of Yurt knows nothing")
    return dict(metadata)


def _array(archive: zipfile.ZipFile, name: str) -> np.ndarray[Any, Any]:
    with archive.open(f"{name}.npy") as member:
        array: np.ndarray[Any, Any] = np.lib.format.read_array(member, allow_pickle=False)
        member.read()  # to the end, where its checksum is looked at
        return array


def _plain(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The array in a dtype of numpy's own."""
    if value.dtype.hasobject:
        raise TrainingError("a variable of strings cannot be kept in a checkpoint")
    return value if value.dtype.kind != "V" and value.dtype.isbuiltin == 1 else value.view(f"u{value.dtype.itemsize}")


def _prune(folder: Path) -> None:
    """Remove what is not kept any longer, and parts that a killed writer left. One writer a folder: the leader."""
    whole = listed(folder)
    within = [kept for kept in whole if not kept.boundary]
    ends = [kept for kept in whole if kept.boundary]
    for kept in within[:-WITHIN_EPOCHS] + ends[:-EPOCH_ENDS]:
        kept.path.unlink(missing_ok=True)
    for path in folder.glob(".step-*.npz.*.part"):
        path.unlink(missing_ok=True)


def _sync(folder: Path) -> None:
    """The rename itself reaches the disk; not every file system can."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
