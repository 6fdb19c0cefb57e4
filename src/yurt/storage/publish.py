"""Publish a finished model: ``python -m yurt.storage.publish --source DIR --output URL --version V``.

It prints one line of JSON and ends with 0, 5 (not published; the model is kept) or 2 (bad arguments). It needs
the standard library alone for folders, and obstore for s3, gs and az.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import FrameType, MappingProxyType
from typing import Any, NoReturn

from yurt.errors import PublishFailed, UsageError
from yurt.storage.errors import StorageFailed
from yurt.storage.manifest import new_manifest
from yurt.storage.model import scan
from yurt.storage.place import PART_BYTES, Limits, open_place
from yurt.storage.redact import redact
from yurt.storage.urls import LATEST, MANIFEST, check_version, parse_output

_NO_META: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Published:
    """What was published and where.

    `place` is what a person would type: a plain path for folders, the URL otherwise. `files` and `bytes` count
    the model without the manifest.
    """

    url: str
    version: str
    files: int
    bytes: int
    manifest_url: str
    latest_url: str
    place: str


def publish(
    source: Path,
    output: str,
    version: str,
    *,
    retry_timeout_s: float = 120,
    meta: Mapping[str, Any] = _NO_META,
    part_bytes: int = PART_BYTES,
) -> Published:
    """Put the model in `source` at ``<output>/<version>``, whole and verified, and let ``latest`` point to it.

    Doing it again is a success and sends nothing that is there and whole. `meta` (JSON: the job's name,
    metrics) goes into the manifest. `retry_timeout_s` bounds every request with its retries; files above
    `part_bytes` are sent in parts of this size.

    Raises:
        StorageFailed: not published, a PublishFailed; its `reason` says what kind of fault, and `source` is kept.
        UsageError: the output, version or meta is wrong.
    """
    location = parse_output(output)
    check_version(version)
    try:
        new_manifest(version, [], meta)
    except (TypeError, ValueError) as error:
        raise UsageError(f"the meta data is no JSON: {error}", hint="give a mapping of plain values") from error
    if location.scheme == "file" and Path(location.path).resolve().is_relative_to(source.resolve()):
        raise UsageError(
            f"the output {location.path} lies inside the model's folder {source}",
            hint="publish to a folder outside of it",
        )
    files = scan(source)
    place = open_place(location, Limits(retry_timeout_s, part_bytes))
    manifest = place.put(files, version, meta)
    return Published(
        url=location.url(version),
        version=version,
        files=len(manifest.files),
        bytes=manifest.total_bytes,
        manifest_url=location.url(version, MANIFEST),
        latest_url=location.url(LATEST),
        place=location.place(version),
    )


class _Stopped(BaseException):
    """A signal asked us to end; not an Exception, so that nothing on the way mistakes it for a fault."""


def _stop(number: int, _frame: FrameType | None) -> NoReturn:
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, signal.SIG_IGN)  # the cleaning up is short, and is not interrupted again
    raise _Stopped(signal.Signals(number).name)


class _Parser(argparse.ArgumentParser):
    """A parser whose complaints are the one JSON line, too."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(message, hint=self.format_usage().strip())


def main(arguments: Sequence[str] | None = None) -> int:
    """Publish as the command line says; the exit code. Prints exactly one line of JSON."""
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, _stop)
        answer, code = _publish(arguments), 0
    except UsageError as error:
        answer, code = _failure("usage", str(error), error.hint), error.exit_code
    except StorageFailed as error:
        answer, code = _failure(error.reason, str(error), error.hint), error.exit_code
    except _Stopped as stopped:
        answer = _failure("other", f"publishing was stopped by {stopped}", "publish again; the model is kept")
        code = PublishFailed.exit_code
    except Exception as error:  # a fault of ours: still one line, never a traceback in a run's log
        answer = _failure("other", f"{type(error).__name__}: {error}", "this is a fault in Yurt; please report it")
        code = PublishFailed.exit_code
    try:
        print(json.dumps(answer, ensure_ascii=True), flush=True)
    except BrokenPipeError:
        sys.stdout = None
    return code


def _publish(arguments: Sequence[str] | None) -> dict[str, Any]:
    parser = _Parser(prog="python -m yurt.storage.publish", description="Publish a finished model.")
    parser.add_argument("--source", required=True, type=Path, help="the folder the script saved to")
    parser.add_argument("--output", required=True, help="a folder, or an s3://, gs:// or az:// URL")
    parser.add_argument("--version", required=True, help="the run's id")
    parser.add_argument("--meta-file", type=Path, help="a JSON object for the manifest")
    parser.add_argument("--retry-timeout", type=float, default=120, help="seconds for a request and its retries")
    options = parser.parse_args(arguments)
    if not 0 < options.retry_timeout < 86_400:
        raise UsageError("--retry-timeout is not between 0 and 86400 seconds", hint="leave it out for 120")
    done = publish(
        options.source,
        options.output,
        options.version,
        retry_timeout_s=options.retry_timeout,
        meta=_read_meta(options.meta_file),
    )
    return {"ok": True, **asdict(done)}


def _read_meta(path: Path | None) -> dict[str, Any]:
    if path is None:
        return {}
    try:
        value = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"--meta-file {path} cannot be read: {error}", hint="give a JSON object") from error
    if not isinstance(value, dict):
        raise UsageError(f"--meta-file {path} holds no JSON object", hint="give a JSON object")
    return value


def _failure(reason: str, message: str, hint: str | None) -> dict[str, Any]:
    one_line = " ".join(redact(message).split())
    return {"ok": False, "reason": reason, "message": one_line, "hint": None if hint is None else redact(hint)}


if __name__ == "__main__":
    # Not sys.exit: threads with a request under way would hold the process until their time-out.
    code = main()
    os._exit(code)
