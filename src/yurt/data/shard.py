"""One shard being written: packed, checksummed, and put in place whole."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any, Final

from yurt.data.compression import packer
from yurt.data.encoding import encode, encode_framed, encode_packed
from yurt.data.errors import DataError
from yurt.data.framing import FRAME_BYTES, MOST_BYTES, crc_extend, frame
from yurt.data.index import Layout, Shard
from yurt.data.stride import Watch

#: Rows that are encoded in one go: enough for numpy, few enough for the processor's cache.
BLOCK_ROWS: Final = 1024


class ShardWriter:
    """Writes ``.<name>.<pid>.tmp`` and renames it when it is finished; what is not finished is removed.

    Rows come through `add`, columns as `yurt.data.columns.conform` makes them. With packed records the rows of one
    record may come in several calls.
    """

    def __init__(self, path: Path, layout: Layout, *, level: int = 6) -> None:
        self._path, self._layout = path, layout
        self._scratch = path.with_name(f".{path.name}.{os.getpid()}.tmp")
        self._file = self._scratch.open("wb", buffering=0)
        self._packer = packer(layout.compression, level)
        self._waiting: list[tuple[dict[str, Any], int]] = []
        self._watch = Watch(layout)
        self.records = self.examples = self._bytes = self._crc = 0

    def add(self, columns: dict[str, Any], rows: int) -> None:
        """Write rows. Raises DataError for a record that protobuf could not read, OSError for a full disk."""
        if self._layout.packed is None:
            for at in range(0, rows, BLOCK_ROWS):
                until = min(at + BLOCK_ROWS, rows)
                self._rows({name: column[at:until] for name, column in columns.items()}, until - at)
            return
        self._waiting.append((columns, rows))
        if sum(count for _, count in self._waiting) >= self._layout.packed:
            self._pack(last=False)

    def close(self) -> Shard:
        """Finish the file and give what the index says of it."""
        if self._waiting:
            self._pack(last=True)
        self._put(self._packer.flush())
        os.fsync(self._file.fileno())
        self._file.close()
        self._scratch.replace(self._path)
        name, checksum = self._path.name, f"{self._crc:08x}"
        return Shard(name, self.records, self.examples, self._bytes, checksum, self._watch.stride)

    def abandon(self) -> None:
        """Leave nothing behind."""
        self._file.close()
        with contextlib.suppress(OSError):
            self._scratch.unlink()

    def _rows(self, columns: dict[str, Any], rows: int) -> None:
        framed = encode_framed(self._layout.schema, columns, rows)
        self.examples += rows
        if framed is None:
            self._write(encode(self._layout.schema, columns, rows), rows)
        else:
            self.records += rows
            self._watch.look(framed, rows)
            self._put(self._packer.compress(framed))

    def _pack(self, *, last: bool) -> None:
        """Write whole records of what waits, and the rest too if it is the last."""
        from yurt.data.sources import concatenated

        packed = self._layout.packed or 1
        columns, rows = concatenated(self._layout.schema, self._waiting)
        whole = rows if last else rows // packed * packed
        step = max(packed, BLOCK_ROWS // packed * packed)
        for at in range(0, whole, step):
            until = min(at + step, whole)
            part = {name: column[at:until] for name, column in columns.items()}
            self._write(encode_packed(self._layout.schema, part, until - at, packed), (until - at) // packed)
        self.examples += whole
        self._waiting = [({name: column[whole:] for name, column in columns.items()}, rows - whole)] * (rows > whole)

    def _write(self, records: list[bytes], whole: int) -> None:
        """Write records, of which the first `whole` have as many rows as a record is to have."""
        for record in records:
            if len(record) > MOST_BYTES:
                raise DataError(
                    f"{self._path.name}: record {self.records:,} would have {len(record):,} bytes; "
                    f"protobuf reads at most {MOST_BYTES:,}",
                    hint="write smaller rows, or pack fewer of them in a record",
                )
            self.records += 1
        framed = b"".join(frame(records))
        self._watch.look(framed[: len(framed) - sum(len(record) + FRAME_BYTES for record in records[whole:])], whole)
        self._put(self._packer.compress(framed))

    def _put(self, data: bytes) -> None:
        if data:
            self._crc = crc_extend(self._crc, data)
            self._bytes += len(data)
            view = memoryview(data)
            while view:
                view = view[self._file.write(view) :]
