"""The folder a task starts in: its own, with the job's files."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def mirror(files: Path, work: Path) -> None:
    """Make `work` hold what `files` holds: folders of its own, copies of files, and the same links.

    So relative paths that tasks write to never collide, while large files, which are links, are not copied.
    A folder that is there already (the task's agent came back) is left as the task left it.
    """
    if work.exists():
        return
    part = work.with_name(f".{work.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    if files.is_dir():
        for folder, folders, names in os.walk(files):
            target = part / Path(folder).relative_to(files)
            for name in folders:
                (target / name).mkdir()
            for name in names:
                shutil.copy2(Path(folder) / name, target / name, follow_symlinks=False)
    part.rename(work)
