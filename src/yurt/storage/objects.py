"""Models in an object store: files, manifest, pointer, each put in one piece and looked at afterwards.

An object appears whole or not at all, so only their order matters. ``<version>/.publishing`` says whose
content is on its way (the hash over its files): publishers of one and the same content help each other, and of
two with different content the one that came later goes on and the other gives up before its manifest.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from yurt.storage.bucket import Bucket, part_size
from yurt.storage.errors import StorageFailed, from_os_error, other_content
from yurt.storage.manifest import FileEntry, Manifest, new_manifest, parse_manifest
from yurt.storage.model import Hashed, ModelFile, changed, hash_file
from yurt.storage.parallel import for_each
from yurt.storage.place import Limits
from yurt.storage.urls import CLAIM, LATEST, MANIFEST, Location, check_version

_FILES_AT_ONCE = 4
_MD5_ETAG = re.compile(r"[0-9a-f]{32}(-\d+)?")
_TRIES = 2


class ObjectStore:
    """A place of the schemes ``s3:``, ``gs:`` and ``az:``."""

    def __init__(self, location: Location, limits: Limits) -> None:
        self.location = location
        self._limits = limits
        self._bucket = Bucket(location, limits)

    def put(self, files: Sequence[ModelFile], version: str, meta: Mapping[str, Any]) -> Manifest:
        """See Place.put. Reads the model twice: once for its hashes, once to send it."""
        before = self._find_manifest(version)  # the first request: a store that is not there is noticed now
        model = {f.path: (f, hash_file(f, part_size(f.size_bytes, self._limits.part_bytes))) for f in files}
        manifest = new_manifest(version, [hashed.entry for _, hashed in model.values()], meta)
        if before is not None:
            if before.content != manifest.content:
                raise other_content(self.location.url(version))
            self._send(model, version, again=True, claim=None)
            self._point_to(version)
            return before
        claim = manifest.content.encode()
        earlier = self._claim(version)
        if earlier != claim:
            self._bucket.put(self._key(version, CLAIM), claim)
        self._send(model, version, again=earlier is not None, claim=claim)
        if earlier not in (None, claim):
            self._remove_strangers(version, manifest)
        self._put_manifest(manifest)
        self._tidy(lambda: [self._key(version, CLAIM)])
        self._point_to(version)
        return manifest

    def _key(self, *parts: str) -> str:
        return self.location.key(*parts)

    def _claim(self, version: str) -> bytes | None:
        try:
            return self._bucket.get(self._key(version, CLAIM))
        except StorageFailed as error:
            if error.reason == "denied":  # see _find_manifest
                return None
            raise

    def _find_manifest(self, version: str) -> Manifest | None:
        key = self._key(version, MANIFEST)
        try:
            text = self._bucket.get(key)
        except StorageFailed as error:
            # Without s3:ListBucket, Amazon S3 answers 403 for an object that is not there (S3 API Reference,
            # GetObject). Writing will show whether the credentials are any good.
            if error.reason == "denied" and "no credentials" not in str(error):
                return None
            raise
        return None if text is None else parse_manifest(text, self.location.url(version, MANIFEST))

    def _send(
        self, model: Mapping[str, tuple[ModelFile, Hashed]], version: str, *, again: bool, claim: bytes | None
    ) -> None:
        """Send every file and look at it; `again`: only those that are not there and whole."""

        def one(item: tuple[ModelFile, Hashed]) -> None:
            file, hashed = item
            key = self._key(version, file.path)
            if again and self._is_whole(key, hashed):
                return
            for _ in range(_TRIES):
                self._check_claim(version, claim)
                try:
                    self._bucket.put_file(key, file.source, hashed.entry.size_bytes)
                except OSError as error:
                    raise from_os_error(error, "reading", file.source) from error
                wrong = self._wrong(key, hashed)
                if wrong is None:
                    return
                if hash_file(file, self._limits.part_bytes).entry != hashed.entry:
                    raise changed(file)
            raise StorageFailed(
                f"{self.location.url(version, file.path)} is not what was sent: {wrong}",
                reason="corrupt",
                hint="publish again; if it happens again, suspect a proxy on the way or the store",
            )

        # Large files fill the line by their parts; only small ones gain from company.
        large = [item for item in model.values() if item[0].size_bytes > self._limits.part_bytes]
        small = [item for item in model.values() if item[0].size_bytes <= self._limits.part_bytes]
        for_each(small, one, at_once=_FILES_AT_ONCE)
        for_each(large, one, at_once=1)
        self._check_claim(version, claim)

    def _is_whole(self, key: str, hashed: Hashed) -> bool:
        try:
            return self._wrong(key, hashed) is None
        except StorageFailed as error:
            if error.reason == "denied":  # not there, for credentials that may not list: see _find_manifest
                return False
            raise

    def _check_claim(self, version: str, claim: bytes | None) -> None:
        if claim is None:
            return
        there = self._claim(version)
        if there == claim:
            return
        if there is None:
            found = self._find_manifest(version)  # somebody with the same content was faster, and has ended
            if found is None or found.content.encode() == claim:
                return
            raise other_content(self.location.url(version))
        raise StorageFailed(
            f"another publisher has begun to publish another model as {self.location.url(version)}",
            reason="other",
            hint="publish under another version",
        )

    def _wrong(self, key: str, hashed: Hashed) -> str | None:
        """What is wrong with an object; None when it is whole.

        Every store is asked for the size. S3 is asked for the ETag, too: where that is no MD5 of the content
        (KMS and customer keys), the object is read back, which is the only other proof.
        """
        found = self._bucket.head(key)
        if found is None:
            return "it is not there"
        if found.size_bytes != hashed.entry.size_bytes:
            return f"it has {found.size_bytes} bytes instead of {hashed.entry.size_bytes}"
        if self.location.scheme != "s3" or found.etag == hashed.etag:
            return None
        whole = hashlib.sha256()
        for block in self._bucket.read(key, found.size_bytes):
            whole.update(block)
        return None if whole.hexdigest() == hashed.entry.sha256 else "its SHA-256 is another"

    def _remove_strangers(self, version: str, manifest: Manifest) -> None:
        """Remove what an unfinished publish of another content left below this version."""
        ours = {self._key(version, f.path) for f in manifest.files} | {self._key(version, CLAIM)}
        self._tidy(lambda: [key for key in self._bucket.keys(self._key(version)) if key not in ours])

    def _tidy(self, keys: Callable[[], list[str]]) -> None:
        """Delete what is only litter. Credentials that may not list or delete are no reason to fail."""
        try:
            for key in keys():
                self._bucket.delete(key)
        except StorageFailed as error:
            if error.reason not in ("denied", "other"):
                raise

    def _put_manifest(self, manifest: Manifest) -> None:
        key = self._key(manifest.version, MANIFEST)
        self._bucket.put(key, manifest.to_json(), kind="application/json")
        there = self._bucket.get(key)
        if there is None or parse_manifest(there, key).content != manifest.content:
            raise StorageFailed(
                f"{self.location.url(manifest.version, MANIFEST)} is not what was sent",
                reason="corrupt",
                hint="publish again; if it happens again, suspect a proxy on the way or the store",
            )

    def _point_to(self, version: str) -> None:
        self._bucket.put(self._key(LATEST), f"{version}\n".encode(), kind="text/plain; charset=utf-8")

    def latest(self) -> str:
        """See Place.latest."""
        text = self._bucket.get(self._key(LATEST))
        if text is None:
            raise StorageFailed(
                f"nothing is published in {self.location.url()}", reason="not-found", hint="check the output"
            )
        return check_version(text.decode("utf-8", "replace").strip())

    def versions(self) -> list[str]:
        """See Place.versions."""
        found: list[tuple[float, str]] = []

        def look(name: str) -> None:
            info = self._bucket.head(self._key(name, MANIFEST))
            if info is not None:
                found.append((info.modified_s, name))

        for_each(self._bucket.folders(self._key()), look, at_once=_FILES_AT_ONCE)
        return [name for _, name in sorted(found)]

    def manifest(self, version: str) -> Manifest:
        """See Place.manifest."""
        text = self._bucket.get(self._key(version, MANIFEST))
        if text is None:
            raise StorageFailed(
                f"{self.location.url()} has no published version {version}",
                reason="not-found",
                hint="check the output and the version's name",
            )
        return parse_manifest(text, self.location.url(version, MANIFEST))

    def read(self, version: str, entry: FileEntry) -> Iterator[bytes]:
        """See Place.read."""
        key = self._key(version, entry.path)
        info = self._bucket.head(key)
        url = self.location.url(version, entry.path)
        if info is None:
            raise StorageFailed(f"{url} is missing", reason="corrupt", hint="publish it again")
        if info.size_bytes != entry.size_bytes:
            raise StorageFailed(
                f"{url} has {info.size_bytes} bytes where the manifest says {entry.size_bytes}",
                reason="corrupt",
                hint="publish it again",
            )
        yield from self._bucket.read(key, entry.size_bytes)

    def check(self, needed_bytes: int) -> None:
        """See Place.check. An object store's room cannot be asked for."""
        del needed_bytes
        key = self._key(".yurt-check")
        self._bucket.put(key, b"yurt\n")
        self._tidy(lambda: [key])
