"""The job's files as they are at the moment of submission, so that later edits change no running job."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from yurt.errors import LauncherError

#: Files up to this size are copied; larger ones (data) are linked.
COPIED_BYTES: Final = 1 << 20
#: With more files than this the job file must say which of them it means.
MOST_FILES: Final = 10_000
_MOST_FOLDERS: Final = 32
_IGNORED_FOLDERS: Final = frozenset({"__pycache__", "node_modules", "site-packages"})


def snapshot(folder: Path, patterns: Iterable[str], target: Path, leave_out: Iterable[Path] = ()) -> int:
    """Put the files that `patterns` name below `folder` into `target`; how many there were.

    Left out wherever a whole folder is named: hidden files, ``__pycache__``, virtual environments, compiled Python,
    and the folders `leave_out` (the job's own output). Raises LauncherError for more than `MOST_FILES`.
    """
    out = {path.resolve() for path in leave_out}
    target.mkdir(parents=True, exist_ok=True)
    count = 0
    for source in _files(folder, patterns, out):
        count += 1
        if count > MOST_FILES:
            raise LauncherError(
                f"the job's folder {folder} holds more than {MOST_FILES:,} files",
                hint="name those that the job needs under `files`, and keep data in few large files or a bucket",
            )
        copy = target / source.relative_to(folder)
        if copy.is_symlink() or copy.exists():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        if source.stat().st_size > COPIED_BYTES:
            copy.symlink_to(source.resolve())
        else:
            shutil.copy2(source, copy)
    return count


def linked_folders(folder: Path, patterns: Iterable[str], leave_out: Iterable[Path] = ()) -> tuple[Path, ...]:
    """The folders of the files that `snapshot` would link; none of them is inside another.

    More than `_MOST_FOLDERS` become the one folder that holds them all.
    """
    out = {path.resolve() for path in leave_out}
    large = (file for file in _files(folder, patterns, out) if file.stat().st_size > COPIED_BYTES)
    return _outermost({file.resolve().parent for file in large})


def folders_of_links(files: Path) -> tuple[Path, ...]:
    """The same of a snapshot that is there."""
    entries = (Path(name) / entry for name, _, entries in os.walk(files) for entry in entries)
    return _outermost({entry.readlink().parent for entry in entries if entry.is_symlink()})


def _outermost(folders: set[Path]) -> tuple[Path, ...]:
    if len(folders) > _MOST_FOLDERS:
        folders = {Path(os.path.commonpath(folders))}
    return tuple(sorted(each for each in folders if not folders.intersection(each.parents)))


def _files(folder: Path, patterns: Iterable[str], leave_out: set[Path]) -> Iterator[Path]:
    for pattern in patterns:
        named = folder / pattern
        matches = [named] if named.exists() else sorted(folder.glob(pattern))
        for match in matches:
            if match.is_dir():
                yield from _below(match, leave_out)
            elif match.is_file():
                yield match


def _below(folder: Path, leave_out: set[Path]) -> Iterator[Path]:
    for name, folders, files in os.walk(folder):
        here = Path(name)
        folders[:] = sorted(
            each
            for each in folders
            if not each.startswith(".")
            and each not in _IGNORED_FOLDERS
            and not (here / each / "pyvenv.cfg").exists()
            and (here / each).resolve() not in leave_out
        )
        for each in sorted(files):
            if not each.startswith(".") and not each.endswith((".pyc", ".pyo")) and (here / each).is_file():
                yield here / each
