"""A model, the command in a process of its own, and a look into a bucket."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.flaky_s3 import FlakyS3, MotoS3

FILES = {
    "saved_model.pb": b"graph" * 1000,
    "variables/variables.index": b"index",
    "variables/variables.data-00000-of-00001": os.urandom(200_000),
    "assets/empty.txt": b"",
    "assets/vocabulary für Wörter (1) 100%?.txt": "häufig\n".encode(),
    "assets/deep/er/日本.txt": b"x",
}


def make_model(folder: Path, files: dict[str, bytes]) -> Path:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
    return folder


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but the manifest."""
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and p.name != "manifest.json"
    }


@dataclass(frozen=True)
class Answer:
    code: int
    said: dict[str, Any]
    stdout: str
    stderr: str


def command(*arguments: object, env: dict[str, str] | None = None, python: list[str] | None = None) -> Answer:
    """Run the publisher; it has to print exactly one line of JSON."""
    done = subprocess.run(
        [*(python or [sys.executable, "-m", "yurt.storage.publish"]), *map(str, arguments)],
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        timeout=50,
        check=False,
    )
    assert done.stdout.count("\n") == 1, done
    return Answer(done.returncode, json.loads(done.stdout), done.stdout, done.stderr)


@dataclass(frozen=True)
class S3:
    """A bucket of this test's own behind a proxy; the environment points to the proxy."""

    moto: MotoS3
    proxy: FlakyS3
    bucket: str

    @property
    def output(self) -> str:
        return f"s3://{self.bucket}/some prefix/models"

    def objects(self) -> dict[str, bytes]:
        prefix = "some prefix/models/"
        return {k.removeprefix(prefix): v for k, v in self.moto.objects(self.bucket).items()}
