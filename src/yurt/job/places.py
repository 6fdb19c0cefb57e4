"""Where things are: the files that travel with a job, what its script saves, and its output."""

from __future__ import annotations

import os
import re
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import urlsplit

from yurt.job.findings import closest, mistake, quoted
from yurt.job.written import read_text

STORES = {"s3": "s3://bucket/prefix", "gs": "gs://bucket/prefix", "az": "az://container/prefix"}
_SCHEMES = ("file", *STORES)
_KNOWN = "file:///folder, s3://bucket/prefix, gs://bucket/prefix and az://container/prefix"
_SAME_STORE = {"s3a": "s3", "s3n": "s3", "gcs": "gs", "azure": "az", "abfs": "az", "abfss": "az", "wasbs": "az"}

_IMAGE = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]+)?/)?"
    r"[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_{1,2}|-+)[a-z0-9]+)*)*"
    r"(?::[A-Za-z0-9_][A-Za-z0-9_.-]{0,127})?(?:@[a-z0-9]+:[0-9a-f]{32,})?",
)


def read_output(raw: Any) -> str:
    """A path or a URL where the model goes. A path stays as it is written until a folder is known.

    Raises a mistake for an unknown kind of URL, for one without a bucket and for one with a password.
    """
    text = read_text(raw, wanted="a path or a URL").strip()
    if not text:
        raise mistake("is empty", "leave output out to publish nothing")
    scheme, colon, rest = text.partition(":")
    scheme = scheme.lower()
    if not colon or not (rest.startswith("//") or scheme in _SCHEMES):
        return text
    if not rest.startswith("//"):
        raise mistake(f"must have // after {scheme}:", f"did you mean {scheme}://{rest.lstrip('/')}?")
    if scheme not in _SCHEMES:
        near = _SAME_STORE.get(scheme) or closest(scheme, _SCHEMES)
        hint = f"did you mean {near}://?" if near else None
        raise mistake(f"begins with {quoted(scheme + '://')}; the known kinds are {_KNOWN}", hint)
    _check_url(scheme, text)
    return f"{scheme}:{rest}"


def _check_url(scheme: str, text: str) -> None:
    try:
        parts = urlsplit(text)
    except ValueError:
        raise mistake("is not a URL that can be read", f"write {_KNOWN}") from None
    if "@" in parts.netloc:  # the message shows nothing of the URL: it may hold a password
        raise mistake("holds credentials, which would be seen by everybody", "leave them to the environment")
    if any(letter.isspace() or not letter.isprintable() for letter in parts.netloc):
        raise mistake("has a space or a line break in its first part")
    if scheme == "file":
        if parts.netloc not in {"", "localhost"} or not parts.path.startswith("/"):
            hint = f"did you mean file:///{text[len('file://') :].lstrip('/')}?"
            raise mistake("names a host, and a file URL is for this machine", hint)
        return
    if not parts.netloc:
        part = "container" if scheme == "az" else "bucket"
        raise mistake(f"names no {part}", f"write {STORES[scheme]}")
    if parts.query or parts.fragment:
        raise mistake("has a ? or a #, which the place of a model cannot have")


def output_in(output: str, folder: Path) -> str:
    """The output as a URL: a path is taken relative to `folder`, which is absolute."""
    if re.match(r"[a-z0-9]+://", output):
        return output
    return Path(os.path.normpath(folder / Path(output).expanduser())).as_uri()


def read_travelling(raw: Any) -> str:
    """One path or pattern of `files`. Raises a mistake for one that leaves the job file's folder."""
    text = read_text(raw, wanted="a path or a pattern")
    if not text.strip():
        raise mistake("is empty", "write . for everything in the folder")
    _stay_inside(text, "the folder of the job file")
    return text


def read_saves_to(raw: Any) -> str:
    """The path that the script saves to, relative to the task's folder."""
    text = read_text(raw, wanted="a relative path")
    if not text.strip():
        raise mistake("is empty", "leave saves_to out to use the folder that YURT_MODEL_DIR names")
    _stay_inside(text, "the task's folder")
    if not PurePosixPath(text).parts:
        raise mistake("names the task's whole folder", "name a folder in it, such as model")
    return text


def _stay_inside(text: str, folder: str) -> None:
    path = PurePosixPath(text)
    if path.is_absolute():
        raise mistake(f"must be a path relative to {folder}, not {quoted(text)}")
    if ".." in path.parts:
        raise mistake(f"must stay inside {folder}, and {quoted(text)} leaves it")


def nothing_at(pattern: str, folder: Path) -> str | None:
    """The sentence to say if a path or pattern of `files` names nothing in `folder`, else None."""
    try:
        if os.path.lexists(folder / pattern):
            return None
        if not any(letter in pattern for letter in "*?["):
            return f"names {quoted(pattern)}, which does not exist"
        if next(folder.glob(pattern), None) is not None:
            return None
    except (ValueError, NotImplementedError, IndexError):
        return f"holds the pattern {quoted(pattern)}, which cannot be read: ** must stand between slashes"
    except OSError as error:
        return f"names {quoted(pattern)}, which cannot be read: {error.strerror}"
    return f"holds the pattern {quoted(pattern)}, which matches nothing"


def read_image(raw: Any) -> str:
    """The name of a container image. Raises a mistake where its form cannot be right."""
    text = read_text(raw, wanted="the name of an image")
    if "://" in text:
        raise mistake("must be the name of an image, without a scheme", f"did you mean {text.split('://')[-1]}?")
    if len(text) > 512 or not _IMAGE.fullmatch(text):
        hint = f"did you mean {text.lower()}?" if len(text) <= 512 and _IMAGE.fullmatch(text.lower()) else None
        raise mistake(f"must be the name of an image such as name:tag, not {quoted(text)}", hint)
    return text
