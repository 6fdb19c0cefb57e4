"""Models in a folder of this machine or of a mounted filesystem; the standard library alone.

A version is written into ``.<version>.partial``, made durable, and renamed; the manifest is inside before the
rename, so whoever sees the version's folder sees all of it. ``.<version>.partial.lock`` keeps publishers of one version
apart: it is held by flock, which the kernel gives up when its holder dies, however it dies.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from yurt.storage.copying import Copy, check_room
from yurt.storage.errors import StorageFailed, from_os_error, other_content
from yurt.storage.lock import Lock
from yurt.storage.manifest import FileEntry, Manifest, new_manifest, parse_manifest
from yurt.storage.model import ModelFile, blocks, hash_file
from yurt.storage.place import Limits
from yurt.storage.pointer import point_to, read_pointer, sync_folder
from yurt.storage.urls import MANIFEST, Location, check_version

_LOCK = ".partial.lock"


class Folder:
    """A place of the scheme ``file:``."""

    def __init__(self, location: Location, limits: Limits) -> None:
        self.location = location
        self._root = Path(location.path)
        self._limits = limits

    def put(self, files: Sequence[ModelFile], version: str, meta: Mapping[str, Any]) -> Manifest:
        """See Place.put. What a killed publish of any version left here is removed first."""
        for file in files:
            if file.source.is_relative_to(self._root.resolve() / version):
                raise StorageFailed(
                    f"the model's folder lies inside {self._root / version}, where it should be published to",
                    reason="other",
                    hint="publish from the folder that the script saved to",
                )
        try:
            self._root.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise from_os_error(error, "creating the folder", self._root) from error
        with Lock(self._root / f".{version}{_LOCK}", self._limits.retry_timeout_s):
            self._sweep(version)
            manifest = self._write(files, version, meta)
            try:
                point_to(self._root, version)
            except OSError as error:
                raise from_os_error(error, "writing", self._root / "latest") from error
        return manifest

    def _sweep(self, version: str) -> None:
        """Remove ``.<any>.partial`` of publishers that are gone: their lock is there and nobody holds it."""
        try:
            names = [p.name[1 : -len(_LOCK)] for p in self._root.glob(f".*{_LOCK}")]
            for name in names:
                if name == version:
                    self._remove(name)
                    continue
                with Lock(self._root / f".{name}{_LOCK}", 0) as lock:
                    if lock.held:
                        self._remove(name)
        except OSError as error:
            raise from_os_error(error, "removing what an earlier publish left in", self._root) from error

    def _remove(self, version: str) -> None:
        partial = self._root / f".{version}.partial"
        if partial.is_dir() and not partial.is_symlink():
            shutil.rmtree(partial)
        (self._root / f".{version}.latest").unlink(missing_ok=True)

    def _damaged(self, files: Sequence[ModelFile], version: str) -> list[ModelFile]:
        """Which files of a version that is there already have to be written again.

        Raises:
            StorageFailed: what is there is no published model, or another one.
        """
        final = self._root / version
        if not (final / MANIFEST).is_file():
            raise StorageFailed(
                f"{final} exists and is no published model: it has no {MANIFEST}",
                reason="other",
                hint="move it away, or publish under another version",
            )
        entries = [hash_file(file, self._limits.part_bytes).entry for file in files]
        if tuple(entries) != self.manifest(version).files:
            raise other_content(str(final))
        return [f for f, e in zip(files, entries, strict=True) if not self._whole(final / e.path, e)]

    def _whole(self, path: Path, entry: FileEntry) -> bool:
        try:
            there = ModelFile(entry.path, path, path.stat().st_size)
            return hash_file(there, self._limits.part_bytes).entry == entry
        except (OSError, StorageFailed):
            return False

    def _write(self, files: Sequence[ModelFile], version: str, meta: Mapping[str, Any]) -> Manifest:
        """Write the version, or only its damaged files: each of these is put in its place in one step."""
        partial, final = self._root / f".{version}.partial", self._root / version
        there = os.path.lexists(final)
        missing = self._damaged(files, version) if there else files
        copy = Copy(partial, total_bytes=sum(f.size_bytes for f in missing))
        try:
            check_room(self._root, copy.total_bytes)
            partial.mkdir()
            entries = [copy.file(f) for f in missing]
            if there:
                manifest = self.manifest(version)
                for entry in entries:
                    (final / entry.path).parent.mkdir(parents=True, exist_ok=True)
                    (partial / entry.path).replace(final / entry.path)
            else:
                manifest = new_manifest(version, entries, meta)
                copy.text(MANIFEST, manifest.to_json())
                copy.sync_folders()
                partial.rename(final)
            sync_folder(self._root)
        except OSError as error:
            raise from_os_error(error, "writing", copy.target, progress=copy.progress) from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)
        return manifest

    def latest(self) -> str:
        """See Place.latest."""
        try:
            version = read_pointer(self._root)
        except OSError as error:
            raise from_os_error(error, "reading", self._root / "latest") from error
        if version is None:
            raise StorageFailed(
                f"nothing is published in {self._root}", reason="not-found", hint="check the output's path"
            )
        return check_version(version)

    def versions(self) -> list[str]:
        """See Place.versions."""
        try:
            found = [
                ((child / MANIFEST).stat().st_mtime_ns, child.name)
                for child in self._root.iterdir()
                if not child.is_symlink() and not child.name.startswith(".") and (child / MANIFEST).is_file()
            ]
        except FileNotFoundError:
            return []
        except OSError as error:
            raise from_os_error(error, "reading", self._root) from error
        return [name for _, name in sorted(found)]

    def manifest(self, version: str) -> Manifest:
        """See Place.manifest."""
        path = self._root / version / MANIFEST
        try:
            return parse_manifest(path.read_bytes(), str(path))
        except FileNotFoundError:
            raise StorageFailed(
                f"{self._root} has no published version {version}",
                reason="not-found",
                hint="check the output's path and the version's name",
            ) from None
        except OSError as error:
            raise from_os_error(error, "reading", path) from error

    def read(self, version: str, entry: FileEntry) -> Iterator[bytes]:
        """See Place.read."""
        path = self._root / version / entry.path
        try:
            size = path.stat().st_size
        except FileNotFoundError:
            raise StorageFailed(f"{path} is missing", reason="corrupt", hint="publish it again") from None
        except OSError as error:
            raise from_os_error(error, "reading", path) from error
        if size != entry.size_bytes:
            raise StorageFailed(
                f"{path} has {size} bytes where the manifest says {entry.size_bytes}",
                reason="corrupt",
                hint="publish it again",
            )
        yield from blocks(ModelFile(entry.path, path, size))

    def check(self, needed_bytes: int) -> None:
        """See Place.check. Folders that it had to make are taken away again."""
        made: list[Path] = []
        try:
            for folder in [*reversed(self._root.parents), self._root]:
                if not folder.exists():
                    folder.mkdir()
                    made.append(folder)
            probe = self._root / f".yurt-check-{os.getpid()}"
            try:
                probe.write_bytes(b"yurt\n")
            finally:
                probe.unlink(missing_ok=True)
            check_room(self._root, max(needed_bytes, 1))
        except OSError as error:
            raise from_os_error(error, "trying to write to", self._root) from error
        finally:
            for folder in reversed(made):
                try:
                    folder.rmdir()
                except OSError:
                    break
