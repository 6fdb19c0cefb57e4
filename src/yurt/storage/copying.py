"""Files copied into a folder, durable, hashed on the way, and counted."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from yurt.storage.errors import StorageFailed, megabytes
from yurt.storage.manifest import FileEntry
from yurt.storage.model import ModelFile, blocks, changed
from yurt.storage.pointer import sync_folder


class Copy:
    """Copies into `folder`. `target` is what is being written, `progress` how far it came."""

    def __init__(self, folder: Path, *, total_bytes: int) -> None:
        self._folder = folder
        self.total_bytes = total_bytes
        self._written_bytes = 0
        self._folders = {folder}
        self.target = folder

    @property
    def progress(self) -> str:
        """Such as ``12.3 MB of 40.0 MB written``."""
        return f"{megabytes(self._written_bytes)} of {megabytes(self.total_bytes)} written"

    def file(self, file: ModelFile) -> FileEntry:
        """Copy one file.

        Raises:
            OSError: the copy cannot be written.
            StorageFailed: the file cannot be read, or changed meanwhile.
        """
        self.target = self._folder / file.path
        self.target.parent.mkdir(parents=True, exist_ok=True)
        self._folders.update(p for p in self.target.parents if p.is_relative_to(self._folder))
        whole, size = hashlib.sha256(), 0
        with self.target.open("xb", buffering=0) as writer:
            for block in blocks(file):
                view = memoryview(block)
                while view:
                    count = writer.write(view)
                    view = view[count:]
                    self._written_bytes += count
                whole.update(block)
                size += len(block)
            os.fsync(writer.fileno())
            if size != file.size_bytes:
                raise changed(file)
        return FileEntry(file.path, size, whole.hexdigest())

    def text(self, name: str, content: bytes) -> None:
        """Write a small file of our own.

        Raises:
            OSError: it cannot be written.
        """
        self.target = self._folder / name
        with self.target.open("xb") as writer:
            writer.write(content)
            writer.flush()
            os.fsync(writer.fileno())

    def sync_folders(self) -> None:
        """Make all names in the copy durable.

        Raises:
            OSError: it cannot be done.
        """
        for folder in self._folders:
            sync_folder(folder)


def check_room(folder: Path, needed_bytes: int) -> None:
    """Look for room before filling a disk that others use, too.

    Raises:
        StorageFailed: no-space: fewer bytes are free than needed.
        OSError: the filesystem cannot be asked.
    """
    state = os.statvfs(folder)
    free = (state.f_bfree if os.geteuid() == 0 else state.f_bavail) * state.f_frsize
    if state.f_blocks > 0 and free < needed_bytes:  # some network filesystems know no sizes and say 0
        raise StorageFailed(
            f"no room left on device for {folder}: {megabytes(needed_bytes)} needed, {megabytes(free)} free",
            reason="no-space",
            hint="make room there, then publish again",
        )
