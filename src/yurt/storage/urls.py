"""Where a model goes: an output URL taken apart, and the names allowed below it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias
from urllib.parse import unquote

from yurt.errors import UsageError
from yurt.storage.redact import redact

Scheme: TypeAlias = Literal["file", "s3", "gs", "az"]

LATEST = "latest"
MANIFEST = "manifest.json"
CLAIM = ".publishing"
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")
_UNFIT = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_HAS_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")
_SCHEMES: dict[str, Scheme] = {"file": "file", "s3": "s3", "gs": "gs", "az": "az"}


@dataclass(frozen=True, slots=True)
class Location:
    """An output, taken apart.

    `bucket` is empty for files. `path` is an absolute path for files, and a key prefix without slashes at
    its ends (possibly empty) for object stores.
    """

    scheme: Scheme
    bucket: str
    path: str

    def url(self, *parts: str) -> str:
        """The URL of something below this output."""
        if self.scheme == "file":
            return Path(self.path, *parts).as_uri()
        return "/".join([f"{self.scheme}://{self.bucket}", *([self.path] if self.path else []), *parts])

    def place(self, *parts: str) -> str:
        """The same as a person would type it: a plain path for files, the URL otherwise."""
        return str(Path(self.path, *parts)) if self.scheme == "file" else self.url(*parts)

    def key(self, *parts: str) -> str:
        """The object's key below this output (object stores)."""
        return "/".join([*([self.path] if self.path else []), *parts])


def parse_output(output: str | Path) -> Location:
    """Take an output apart: ``file:///dir``, a plain path, ``s3://``, ``gs://`` or ``az://bucket/prefix``.

    Percent signs are decoded in ``file:`` URLs only: object keys are taken as they stand, as the clouds' own
    tools do. ``az://`` names the container; the account comes from AZURE_STORAGE_ACCOUNT_NAME.

    Raises:
        UsageError: another scheme, no bucket, credentials inside the URL, or parts such as ``..``.
    """
    text = str(output)
    found = _HAS_SCHEME.match(text)
    if found is None:
        return _file(text)
    scheme = _SCHEMES.get(found[1].lower())
    rest = text[found.end() :]
    if scheme is None:
        raise UsageError(
            f"the output {redact(text)} has the scheme {found[1]!r}",
            hint="use a path, or a URL that begins with file:, s3://, gs:// or az://",
        )
    if scheme == "file":
        return _file_url(text, rest)
    bucket, _, path = rest.removeprefix("//").partition("/")
    path = path.removesuffix("/")
    if not rest.startswith("//") or not bucket:
        raise UsageError(f"the output {redact(text)} names no bucket", hint=f"write {scheme}://BUCKET/PREFIX")
    if "@" in bucket:
        raise UsageError(
            f"the output {redact(text)} has credentials in it",
            hint="give credentials by environment variables or files; write SCHEME://BUCKET/PREFIX",
        )
    wrong = next((p for p in path.split("/") if path and unfit(p)), None)
    if wrong is not None:
        raise UsageError(
            f"the output {redact(text)} has the part {wrong!r} in its path",
            hint="leave out empty parts, '.', '..' and control characters",
        )
    return Location(scheme, bucket, path)


def _file_url(text: str, rest: str) -> Location:
    host = ""
    if rest.startswith("//"):
        host, slash, tail = rest[2:].partition("/")
        rest = slash + tail
    if host not in ("", "localhost") or not rest.startswith("/"):
        raise UsageError(f"the output {redact(text)} is no file URL", hint="write file:///folder or a plain path")
    return _file(unquote(rest))


def _file(text: str) -> Location:
    if not text or "\0" in text:
        raise UsageError("the output is empty", hint="name a folder, or a URL such as s3://BUCKET/PREFIX")
    return Location("file", "", str(Path(text).expanduser().absolute()))


def check_version(version: str) -> str:
    """The version itself when its name is safe in paths, keys and URLs.

    Raises:
        UsageError: the name would not be safe, or is ``latest``.
    """
    if _VERSION.fullmatch(version) is None or version in (LATEST, MANIFEST):
        raise UsageError(
            f"the version {version!r} is no safe name",
            hint="use 1 to 128 letters, digits, '.', '_' and '-', beginning with a letter or digit; not 'latest'",
        )
    return version


def unfit(part: str) -> bool:
    """Whether a single name cannot be part of an object's key.

    Empty, ``.``, ``..`` and control characters are refused by object_store, which obstore (0.12) stands on;
    names that are no valid Unicode have no form in JSON or in a URL.
    """
    return part in ("", ".", "..") or _UNFIT.search(part) is not None
