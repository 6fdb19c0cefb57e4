"""Reads a task's log from a file of this machine."""

from __future__ import annotations

from pathlib import Path


def read_from(path: str, offset: int, most: int = 1 << 20) -> tuple[bytes, int]:
    """Up to `most` bytes of a file from `offset`, and the next offset; empty where there is no more, or no file."""
    try:
        with Path(path).open("rb") as file:
            file.seek(offset)
            data = file.read(most)
    except FileNotFoundError:
        return b"", offset
    return data, offset + len(data)
