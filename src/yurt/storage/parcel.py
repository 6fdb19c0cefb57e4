"""A file that lies in a bucket for the time of one run, for whoever is given its address.

Parcels are below ``.yurt/`` of an output: no name of a version begins with a dot.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from yurt.storage.bucket import Bucket
from yurt.storage.place import Limits
from yurt.storage.urls import parse_output

#: Seconds that a signed address can hold at most: Amazon S3 (User Guide, "Sharing objects with presigned URLs") and
#: Google Cloud Storage ("Signed URLs") both say 7 days.
LONGEST_S: Final = 7 * 24 * 3600
_FOLDER: Final = ".yurt"


def send_parcel(output: str, name: str, file: Path) -> tuple[str, str]:
    """Put the file there: the parcel's own name for people, and an address to read it by, for `LONGEST_S`.

    Whoever has the address needs no credentials. Raises StorageFailed, UsageError.
    """
    location = parse_output(output)
    bucket = Bucket(location, Limits())
    key = location.key(_FOLDER, name)
    bucket.put_file(key, file, file.stat().st_size)
    return location.url(_FOLDER, name), bucket.signed_url(key, LONGEST_S)


def lend(output: str, name: str, file: Path) -> tuple[str, str]:
    """As `send_parcel`, for a file that runs share and that stays: one of this size is not sent again."""
    location = parse_output(output)
    bucket = Bucket(location, Limits())
    key, size_bytes = location.key(_FOLDER, name), file.stat().st_size
    there = bucket.head(key)
    if there is None or there.size_bytes != size_bytes:
        bucket.put_file(key, file, size_bytes)
    return location.url(_FOLDER, name), bucket.signed_url(key, LONGEST_S)


def remove_parcel(output: str, name: str) -> None:
    """Take it away; none there is as good. Raises StorageFailed, UsageError."""
    location = parse_output(output)
    Bucket(location, Limits(retry_timeout_s=15)).delete(location.key(_FOLDER, name))
