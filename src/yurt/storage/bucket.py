"""One bucket or container, through obstore: the only file that imports it.

It knows nothing of models. Keys are whole keys; every fault becomes a StorageFailed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from yurt.storage.errors import StorageFailed, from_os_error
from yurt.storage.faults import explain
from yurt.storage.parallel import interruptible
from yurt.storage.place import Limits
from yurt.storage.urls import Location

if TYPE_CHECKING:
    from obstore.store import ClientConfig, ObjectStore, RetryConfig, S3CredentialProvider

T = TypeVar("T")

PARTS_AT_ONCE = 4
_MOST_PARTS = 10_000  # Amazon S3, S3 User Guide, "Amazon S3 multipart upload limits"
_SLOWEST_REQUEST_S = 120  # 8 MiB in four requests at once then need 280 kB/s

_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "gs": ("GOOGLE_BASE_URL",),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
}
_AWS_OWN_CREDENTIALS = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_SKIP_SIGNATURE",
)


@dataclass(frozen=True, slots=True)
class ObjectInfo:
    """What a store says of an object. `etag` has no quotes; `modified_s` is seconds since 1970."""

    size_bytes: int
    etag: str
    modified_s: float


class Bucket:
    """A bucket with the usual credentials and environment variables of its cloud.

    obstore (0.12) retries server errors (5xx), 429 and lost connections itself, with jitter and growing pauses;
    `limits.retry_timeout_s` is where it gives up.
    """

    def __init__(self, location: Location, limits: Limits) -> None:
        self._location = location
        self._limits = limits
        self._started = time.monotonic()
        self._name = f"{location.scheme}://{location.bucket}"
        self.endpoint = next((os.environ[n] for n in _ENDPOINTS[location.scheme] if os.environ.get(n)), "")
        try:
            import obstore
        except ImportError as error:
            raise StorageFailed(
                f"{self._name} cannot be reached: the package obstore is not installed in this Python",
                reason="other",
                hint="install it: python -m pip install obstore",
            ) from error
        self._obstore = obstore
        self._store: ObjectStore = self._ask("", self._connect)

    def _connect(self) -> ObjectStore:
        from obstore.store import AzureStore, GCSStore, S3Store

        seconds = self._limits.retry_timeout_s
        pause = min(10, seconds / 8)
        retry: RetryConfig = {
            "retry_timeout": timedelta(seconds=seconds - pause),  # it is looked at before a pause, not after
            "max_retries": 1000,  # time decides, not the count
            "backoff": {
                "init_backoff": timedelta(seconds=min(0.2, seconds / 20)),
                "max_backoff": timedelta(seconds=pause),
                "base": 2,
            },
        }
        client: ClientConfig = {
            "timeout": timedelta(seconds=min(_SLOWEST_REQUEST_S, seconds)),
            "connect_timeout": timedelta(seconds=min(5, seconds)),
        }
        if self.endpoint.startswith("http://"):
            client["allow_http"] = True
        name = self._location.bucket
        if self._location.scheme == "gs":
            return GCSStore(name, client_options=client, retry_config=retry)
        if self._location.scheme == "az":
            return AzureStore(name, client_options=client, retry_config=retry)
        bundle = os.environ.get("AWS_CA_BUNDLE")
        if bundle and self.endpoint.startswith("https://"):
            try:
                client["root_certificate"] = Path(bundle).read_text(encoding="ascii", errors="replace")
            except OSError as error:
                raise from_os_error(error, "reading the file that AWS_CA_BUNDLE names,", bundle) from error
        provider = _aws_profile(os.environ)
        if provider is None:
            return S3Store(name, client_options=client, retry_config=retry)
        return S3Store(name, client_options=client, retry_config=retry, credential_provider=provider)

    def put(self, key: str, content: bytes, *, kind: str = "application/octet-stream") -> None:
        """Write a small object in one request."""
        attributes = {"Content-Type": kind}
        self._ask(key, lambda: self._obstore.put(self._store, key, content, attributes=attributes, use_multipart=False))

    def put_file(self, key: str, source: Path, size_bytes: int) -> None:
        """Write a file: in one request up to `part_bytes`, in parts of it above. Memory: 4 parts at most.

        Raises:
            OSError: the file cannot be read.
            StorageFailed: it cannot be written.
        """
        if size_bytes <= self._limits.part_bytes:
            self.put(key, source.read_bytes())
            return
        part = part_size(size_bytes, self._limits.part_bytes)
        with source.open("rb"):  # obstore would say of a missing file what it says of a missing object
            pass
        self._ask(
            key,
            lambda: self._obstore.put(
                self._store, key, source, use_multipart=True, chunk_size=part, max_concurrency=PARTS_AT_ONCE
            ),
        )

    def get(self, key: str) -> bytes | None:
        """A small object; None when there is none."""
        return self._ask_or_none(key, lambda: bytes(self._obstore.get(self._store, key).bytes()))

    def read(self, key: str, size_bytes: int) -> Iterator[bytes]:
        """A large object of a known size, piece by piece, each with its own retries and time-out."""
        step = self._limits.part_bytes
        for start in range(0, size_bytes, step):
            length = min(step, size_bytes - start)
            yield self._ask(
                key,
                lambda: bytes(self._obstore.get_range(self._store, key, start=start, length=length)),  # noqa: B023
            )

    def head(self, key: str) -> ObjectInfo | None:
        """Size and ETag; None when there is no such object."""
        found = self._ask_or_none(key, lambda: self._obstore.head(self._store, key))
        if found is None:
            return None
        etag = (found["e_tag"] or "").strip('"')
        return ObjectInfo(found["size"], etag, found["last_modified"].timestamp())

    def keys(self, prefix: str) -> list[str]:
        """Every key below `prefix` (a whole part of a key)."""
        return self._ask(prefix, lambda: [o["path"] for page in self._obstore.list(self._store, prefix) for o in page])

    def folders(self, prefix: str) -> list[str]:
        """The names that follow directly below `prefix` and have something below them."""
        found = self._ask(
            prefix, lambda: self._obstore.list_with_delimiter(self._store, prefix or None)["common_prefixes"]
        )
        return [name.rstrip("/").rsplit("/", 1)[-1] for name in found]

    def delete(self, key: str) -> None:
        """Delete an object; none there is as good."""
        self._ask_or_none(key, lambda: self._obstore.delete(self._store, key))

    def signed_url(self, key: str, expires_s: int) -> str:
        """An address by which anybody can read the object for so many seconds."""
        expires = timedelta(seconds=expires_s)
        return self._ask(key, lambda: str(self._obstore.sign(self._store, "GET", key, expires)))

    def _ask(self, key: str, request: Callable[[], T]) -> T:
        found = self._request(key, request)
        if isinstance(found, _Missing):
            raise StorageFailed(
                f"{self._name}/{key} is not there", reason="not-found", hint="check the output and the version"
            )
        return found

    def _ask_or_none(self, key: str, request: Callable[[], T]) -> T | None:
        found = self._request(key, request)
        return None if isinstance(found, _Missing) else found

    def _request(self, key: str, request: Callable[[], T]) -> T | _Missing:
        start = time.monotonic()
        try:
            return interruptible(request)
        except (StorageFailed, MemoryError):
            raise
        except Exception as error:  # obstore's own tree, ValueError, OSError, botocore's: all become ours
            if isinstance(error, OSError) and error.errno is not None:
                raise  # a file of this machine; obstore's own FileNotFoundError (no such object) has no number
            fault = explain(
                error,
                bucket=self._name,
                key=key,
                endpoint=self.endpoint,
                elapsed_s=time.monotonic() - start,
                environ=os.environ,
            )
            if fault is None:
                return _Missing()
            raise fault from error


class _Missing:
    """The answer that an object is not there."""


def part_size(size_bytes: int, part_bytes: int) -> int:
    """The bytes of a part: larger for files that would need more than S3's 10,000 parts."""
    return max(part_bytes, -(-size_bytes // _MOST_PARTS))


def _aws_profile(environ: Mapping[str, str]) -> S3CredentialProvider | None:
    """Credentials of an AWS profile, by boto3 where it is importable.

    obstore (0.12) reads environment variables, web identity, container and instance credentials itself, but no
    profile files; its documented way to them is obstore.auth.boto3.

    Raises:
        StorageFailed: AWS_PROFILE asks for a profile and boto3 is missing, or there is no such profile.
    """
    if any(environ.get(name) for name in _AWS_OWN_CREDENTIALS):
        return None
    profile = environ.get("AWS_PROFILE")
    if not profile and not has_aws_files(environ):
        return None
    hint = 'install boto3, or export the keys: eval "$(aws configure export-credentials --format env)"'
    try:
        import boto3  # type: ignore[import-untyped]
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError as error:
        if not profile:
            return None  # the file may be of another account's making: instance credentials come next
        raise StorageFailed(
            f"the AWS profile {profile!r} needs boto3, which is not installed in this Python",
            reason="denied",
            hint=hint,
        ) from error
    try:
        session: Any = boto3.Session()
        return Boto3CredentialProvider(session) if session.get_credentials() is not None else None
    except Exception as error:  # botocore's: no such profile, a broken file
        raise StorageFailed(
            f"the AWS profile {profile or 'default'!r} cannot be used: {error}", reason="denied", hint=hint
        ) from error


def has_aws_files(environ: Mapping[str, str]) -> bool:
    """Whether this user has profile files of the AWS command line."""
    home = Path(environ.get("HOME", "/nonexistent")) / ".aws"
    credentials = Path(environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials")
    config = Path(environ.get("AWS_CONFIG_FILE") or home / "config")
    return credentials.is_file() or config.is_file()
