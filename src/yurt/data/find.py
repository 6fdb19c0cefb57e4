"""Which files a path means, what is said about them, and what lies among them and is none of them.

A path is a file, a pattern (``data/train-*``), a set as it was written (``data/train``), or a folder that holds one
set. Files are sorted by name. What other programs leave is passed over: hidden files, names that begin with ``_``
(``_SUCCESS``), and unfinished or temporary ones.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from yurt.data.errors import DataError, guess
from yurt.data.index import INDEX, SCHEMA, Layout, Shard, load_index, load_layout, load_stride
from yurt.data.stride import Stride

_LEFT_OVER: Final = re.compile(
    r"^[._~#]|(\.tmp|\.temp|\.partial|\.part|\.inprogress|\.crc|\.swp|\.bak|~)$", re.IGNORECASE
)
_NO_RECORDS: Final = re.compile(
    r"\.(json|csv|tsv|parquet|pq|txt|md|py|npy|npz|log|yaml|yml)(\.gz|\.bz2)?$", re.IGNORECASE
)
_NUMBERED: Final = re.compile(r"^(?P<name>.+)-\d{5,}-of-(?P<of>\d{5,})\b(?P<ending>.*)$")

Paths = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


@dataclass(frozen=True)
class Found:
    """The files of a set, sorted; its layout and its index if there are any.

    `index` has an entry for each file that the index names. `lost` are files that the index, or the numbers in the
    others' names, say there should be. `stride` is what the index says of all files.
    """

    name: str
    files: list[Path]
    layout: Layout | None
    index: dict[str, Shard]
    lost: list[str]
    passed_over: list[str]
    stride: Stride | None = None


def left_over(name: str) -> bool:
    """Whether a file's name says that it is nothing to read."""
    return _LEFT_OVER.search(name) is not None


def find(paths: Paths) -> Found:
    """The files that `paths` mean. Raises DataError where there are none, or several sets."""
    if not isinstance(paths, str | os.PathLike):
        several = [Path(path) for path in paths]
        if not several:
            raise DataError("the list of files is empty")
        for path in several:
            if not path.is_file():
                raise DataError(f"there is no file {path}")
        return _found(str(several[0]), sorted(several), [])
    text = os.fspath(paths)
    if "://" in text:
        raise DataError(f"{text} is not on this machine", hint="copy or mount it: data are read from folders")
    path = Path(text)
    if glob.has_magic(text) and not path.exists():
        return _pattern(text)
    if path.is_file():
        return _found(text, [path], [])
    if path.is_dir():
        return _folder(path)
    return _set(path)


def _pattern(text: str) -> Found:
    matches = [Path(name) for name in glob.glob(text, recursive=True) if Path(name).is_file()]  # noqa: PTH207
    files, others = _sorted_out(matches)
    if not files:
        hint = f"it matches {others[0]} and the like, which hold no records" if others else _near(Path(text))
        raise DataError(f"no file matches {text}", hint=hint)
    return _found(text, files, others)


def _folder(path: Path) -> Found:
    names = sorted({file.name.removesuffix(INDEX) for file in path.glob(f"*{INDEX}") if not left_over(file.name)})
    if len(names) == 1:
        found = _set(path / names[0])
        others = [file.name for file in path.iterdir() if file.is_file() and file not in found.files]
        own = (f"{names[0]}{INDEX}", f"{names[0]}{SCHEMA}")
        others = sorted(name for name in others if name not in own and not name.startswith(f".{names[0]}."))
        return replace(found, passed_over=others)
    if names:
        raise DataError(f"{path} holds {len(names)} sets: {', '.join(names)}", hint=f"name one: {path / names[0]}")
    files, others = _sorted_out([file for file in path.iterdir() if file.is_file()])
    if not files:
        raise DataError(
            f"{path} holds no file of records", hint=f"what lies there: {', '.join(others)}" if others else None
        )
    stems = {match["name"] for file in files if (match := _NUMBERED.match(file.name))}
    if len(stems) > 1:
        one = min(stems)
        raise DataError(f"{path} holds {len(stems)} sets: {', '.join(sorted(stems))}", hint=f"name one: {path / one}")
    return _found(str(path), files, others)


def _set(path: Path) -> Found:
    """A set by its name."""
    siblings = [file for file in path.parent.glob(f"{glob.escape(path.name)}-*") if file.is_file()]
    files = [file for file in siblings if (match := _NUMBERED.match(file.name)) and match["name"] == path.name]
    files, others = _sorted_out(files)
    index = path.with_name(path.name + INDEX)
    if not files and not index.exists():
        raise DataError(f"there is no file, folder or set {path}", hint=_near(path))
    return _found(str(path), files, others)


def _near(path: Path) -> str | None:
    folder = path.parent
    while not folder.is_dir():
        if folder == folder.parent:
            return None
        if folder.parent.is_dir():
            return f"there is no folder {folder}"
        folder = folder.parent
    files, _ = _sorted_out([file for file in folder.iterdir() if file.is_file()])
    named = [file.name for file in files if _NUMBERED.match(file.name) or ".tfrecord" in file.name]
    stems = {match["name"] if (match := _NUMBERED.match(name)) else name for name in named}
    if not stems:
        return f"{folder} holds no file of records"
    return guess(re.split(r"[*?\[]", path.name)[0].rstrip("-"), stems, f"{folder} holds")


def _sorted_out(files: list[Path]) -> tuple[list[Path], list[str]]:
    """Files that may hold records, sorted; and the names of the others."""
    good = sorted(file for file in files if not left_over(file.name) and not _NO_RECORDS.search(file.name))
    kept = set(good)
    return good, sorted(file.name for file in files if file not in kept)


def _found(name: str, files: list[Path], others: list[str]) -> Found:
    """With the layout and index of the set that the files belong to, if they belong to one."""
    here = Path(name)
    stems = {(file.parent, match["name"]) for file in files if (match := _NUMBERED.match(file.name))}
    if len(stems) == 1:
        folder, stem = next(iter(stems))
        here = folder / stem
    schema, index = here.with_name(here.name + SCHEMA), here.with_name(here.name + INDEX)
    layout = load_layout(schema) if schema.is_file() else None
    shards = {shard.name: shard for shard in load_index(index)} if index.is_file() else {}
    whole = len(stems) <= 1 and not glob.has_magic(name) and not Path(name).is_file()
    lost = sorted((set(shards) or _numbered(files)) - {file.name for file in files}) if whole else []
    stride = load_stride(index) if shards else None
    return Found(name, files, layout, shards, lost, others, stride)


def _numbered(files: list[Path]) -> set[str]:
    """All the names there should be where files are called ``train-00003-of-00008``: a set may be unfinished."""
    matches = [_NUMBERED.match(file.name) for file in files]
    forms = {(match["name"], match["of"], match["ending"]) for match in matches if match}
    if len(forms) != 1 or None in matches:
        return set()
    ((name, of, ending),) = forms
    return {f"{name}-{number:0{len(of)}d}-of-{of}{ending}" for number in range(int(of))}
