"""Shards written in a process of its own: ``python -m yurt.data.child`` takes rows on its input, pickled.

A plain program and not a forked copy: it works from any script, whether or not it has TensorFlow loaded or a
``__main__`` guard. It ends with its parent, since its input does, and leaves no unfinished file.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO

from yurt.data.errors import DataError
from yurt.data.index import Layout, Shard
from yurt.data.shard import ShardWriter


class Child:
    """The parent's end. One thread at a time may use it."""

    def __init__(self, layout: Layout, level: int) -> None:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "yurt.data.child"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
        )
        self._send("layout", layout, level)

    def open(self, path: Path) -> RemoteShard:
        """Begin a shard."""
        self._send("open", path)
        return RemoteShard(self, path)

    def _send(self, *message: Any) -> None:
        assert self._process.stdin
        try:
            pickle.dump(message, self._process.stdin, protocol=5)
            self._process.stdin.flush()
        except BrokenPipeError:
            raise DataError(f"a writing process ended with exit code {self._process.wait()}") from None

    def answer(self) -> Any:
        """What it says to the last request. Raises what went wrong there."""
        assert self._process.stdout
        try:
            answer = pickle.load(self._process.stdout)  # noqa: S301 - our own child
        except EOFError:
            raise DataError(f"a writing process ended with exit code {self._process.wait()}") from None
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def end(self) -> None:
        """Let it end; unfinished shards are removed."""
        assert self._process.stdin
        assert self._process.stdout
        try:
            self._process.stdin.close()
        except BrokenPipeError:
            pass
        self._process.stdout.close()
        self._process.wait()


class RemoteShard:
    """As a ShardWriter, in the child."""

    def __init__(self, child: Child, path: Path) -> None:
        self._child, self._path = child, path

    def add(self, columns: dict[str, Any], rows: int) -> None:
        """Hand rows over. What goes wrong with them is raised by `close`."""
        self._child._send("add", self._path, columns, rows)  # noqa: SLF001 - two halves of one thing

    def close(self) -> Shard:
        """Finish the shard. Raises DataError and OSError."""
        self._child._send("close", self._path)  # noqa: SLF001
        shard: Shard = self._child.answer()
        return shard

    def abandon(self) -> None:
        """The child removes it when it ends."""


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Do what the parent says until it says no more."""
    shards: dict[Path, ShardWriter] = {}
    broken: dict[Path, Exception] = {}
    _, layout, level = pickle.load(requests)  # noqa: S301 - our own parent
    try:
        while True:
            try:
                verb, path, *rest = pickle.load(requests)  # noqa: S301
            except EOFError:
                return
            try:
                if verb == "open":
                    shards[path] = ShardWriter(path, layout, level=level)
                elif verb == "add" and path not in broken:
                    shards[path].add(*rest)
                elif verb == "close":
                    answer = broken.pop(path, None) or shards[path].close()
                    if not isinstance(answer, Exception):
                        del shards[path]
                    pickle.dump(answer, answers)
                    answers.flush()
            except (DataError, OSError) as error:
                if verb == "close":
                    pickle.dump(error, answers)
                    answers.flush()
                else:
                    broken[path] = error
    finally:
        for shard in shards.values():
            shard.abandon()


if __name__ == "__main__":
    try:
        serve(sys.stdin.buffer, sys.stdout.buffer)
    except (KeyboardInterrupt, BrokenPipeError):
        sys.exit(130)
