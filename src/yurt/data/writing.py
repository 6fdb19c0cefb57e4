"""``write``: rows into balanced TFRecord files, with a schema and an index beside them."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from queue import SimpleQueue
from threading import Lock
from typing import Any

from yurt.data.child import Child, RemoteShard
from yurt.data.compression import named
from yurt.data.errors import DataError
from yurt.data.index import INDEX, Layout, Shard, file_name, load_index, save_index, save_layout, write_json
from yurt.data.progress import Bar
from yurt.data.schema import Described, Schema
from yurt.data.shard import ShardWriter
from yurt.data.sources import Source, source_of
from yurt.data.stride import Stride

#: Fewer rows than this are written here: a process more takes longer to start than it saves.
_FEW_ROWS = 50_000


@dataclass(frozen=True)
class Written:
    """What `write` has left: the files in order, and how many of them were there already."""

    path: Path
    layout: Layout
    shards: list[Shard]
    kept: int

    @property
    def examples(self) -> int:
        """Rows in all files."""
        return sum(shard.examples for shard in self.shards)

    @property
    def bytes(self) -> int:
        """Size of all files."""
        return sum(shard.bytes for shard in self.shards)


def write(
    path: str | os.PathLike[str],
    data: Any,
    *,
    schema: Schema | dict[str, Described] | None = None,
    shards: int = 8,
    compression: str | None = "none",
    level: int = 6,
    packed: int | None = None,
    shuffle: int | None = None,
    processes: int | None = None,
    replace: bool = False,
    progress: bool | None = None,
) -> Written:
    """Write rows as ``<path>-00000-of-00008.tfrecord`` and so on, with ``<path>.schema.json`` and ``.index.json``.

    `data` is a mapping of NumPy arrays (first axis: rows), a pandas DataFrame, a pyarrow Table, the path or paths of
    CSV or Parquet files, or an iterator of rows (mappings) or of DataFrames. `schema` is inferred if it is left out.

    `packed` puts so many rows into each record: still TFRecord and tf.train.Example. It is faster to read where
    records are not all alike (see `yurt.data.stride`), and smaller where rows are.
    `shuffle` is the seed of an order of rows, so that every file is a fair sample (not for streams, whose rows
    are dealt to the files in turn). `level` is zlib's, 1 to 9. `processes` is chosen by what there is to do.

    A file is written under a hidden name and renamed when it is whole. A call that was interrupted and is made
    again with the same data keeps the files that were finished; one that was finished does nothing. Where other
    data of this name lie, it refuses unless `replace` is set.

    Raises DataError for data that do not fit the schema (row and column named), OSError for a disk that is full.
    """
    place = Path(path)
    if shards < 1 or (packed is not None and packed < 1) or not 1 <= level <= 9:
        raise DataError("shards and packed are 1 or more, level is 1 to 9")
    described = Schema(schema) if schema is not None and not isinstance(schema, Schema) else schema
    source = source_of(data, described, shuffle)
    layout = Layout(source.schema, named(compression), packed)
    if source.rows is not None:
        if not source.rows:
            raise DataError("there is no row to write")
        shards = min(shards, source.rows)
    place.parent.mkdir(parents=True, exist_ok=True)
    with _locked(place):
        return _write(place, source, layout, shards, level, _processes(processes, source, layout, shards), replace,
                      Bar(place.name, source.rows, shown=progress))  # fmt: skip


def _write(
    place: Path, source: Source, layout: Layout, shards: int, level: int, processes: int, replace: bool, bar: Bar
) -> Written:
    plan = {"layout": layout.as_json(), "shards": shards, "rows": source.rows, "source": source.fingerprint()}
    state = _State(place, plan)
    if place.with_name(place.name + INDEX).exists():
        if state.finished():
            there = load_index(place.with_name(place.name + INDEX))
            return Written(place, layout, there, len(there))
        if not replace:
            raise DataError(f"there are other data in {place}", hint="replace=True writes over them")
        place.with_name(place.name + INDEX).unlink()
    state.begin()
    save_layout(place.parent, place.name, layout)
    kept = len(state.done)
    with bar:
        if source.rows is None:
            shards = _deal(place, source, layout, shards, level, processes, state, bar)
        else:
            _stretches(place, source, layout, shards, level, processes, state, bar)
    done = [state.done[number] for number in range(shards)]
    for other in place.parent.glob(f"{place.name}-*.tfrecord"):
        if _ours(place.name, other.name) and other.name not in {shard.name for shard in done}:
            other.unlink()
    save_index(place.parent, place.name, done)
    state.finish()
    return Written(place, layout, done, kept)


def _stretches(
    place: Path, source: Source, layout: Layout, shards: int, level: int, processes: int, state: _State, bar: Bar
) -> None:
    """Every shard a stretch of the rows; sizes differ by one row at most."""
    assert source.rows is not None
    edges = [source.rows * number // shards for number in range(shards + 1)]
    todo = [number for number in range(shards) if number not in state.done]
    bar.add(sum(state.done[number].examples for number in state.done))
    with _makers(layout, level, min(processes, len(todo))) as makers:
        free: SimpleQueue[Callable[[Path], ShardWriter | RemoteShard]] = SimpleQueue()
        for make in makers:
            free.put(make)

        def one(number: int) -> None:
            make = free.get()
            try:
                shard = make(place.parent / file_name(place.name, number, shards))
                try:
                    for columns, rows in source.blocks(edges[number], edges[number + 1]):
                        shard.add(columns, rows)
                        bar.add(rows)
                    state.keep(number, shard.close())
                except BaseException:
                    shard.abandon()
                    raise
            finally:
                free.put(make)

        if len(makers) <= 1:
            for number in todo:
                one(number)
            return
        with ThreadPoolExecutor(len(makers)) as pool:
            waiting = [pool.submit(one, number) for number in todo]
            try:
                for future in waiting:
                    future.result()
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise


def _deal(
    place: Path, source: Source, layout: Layout, shards: int, level: int, processes: int, state: _State, bar: Bar
) -> int:
    """Row after row to the shards in turn. Returns how many shards there are: no more than rows."""
    blocks = source.blocks()
    first = next(blocks, None)
    if first is None:
        raise DataError("there is no row to write")
    second = next(blocks, None)
    if second is None:
        shards = min(shards, first[1])
    with _makers(layout, level, min(processes, shards)) as makers:
        writers = [
            makers[number % len(makers)](place.parent / file_name(place.name, number, shards))
            for number in range(shards)
        ]
        try:
            at = 0
            for columns, rows in _chain(first, second, blocks):
                for number, writer in enumerate(writers):
                    start = (number - at) % shards
                    if start < rows:
                        part = {name: column[start::shards] for name, column in columns.items()}
                        writer.add(part, len(range(start, rows, shards)))
                at += rows
                bar.add(rows)
            for number, writer in enumerate(writers):
                state.keep(number, writer.close())
        except BaseException:
            for writer in writers:
                writer.abandon()
            raise
    return shards


def _chain(first: Any, second: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    if second is not None:
        yield second
    yield from rest


@contextmanager
def _makers(layout: Layout, level: int, processes: int) -> Iterator[list[Callable[[Path], ShardWriter | RemoteShard]]]:
    """Functions that begin a shard: one a process, or one that does it here."""
    if processes <= 1:
        yield [lambda path: ShardWriter(path, layout, level=level)]
        return
    with ExitStack() as stack:
        children = []
        for _ in range(processes):
            child = Child(layout, level)
            stack.callback(child.end)
            children.append(child)
        yield [child.open for child in children]


class _State:
    """``.<name>.writing.json``: what is being written from what, and which shards are finished."""

    def __init__(self, place: Path, plan: dict[str, Any]) -> None:
        self._file = place.with_name(f".{place.name}.writing.json")
        self._place, self._plan, self._lock = place, plan, Lock()
        self.done: dict[int, Shard] = {}

    def finished(self) -> bool:
        """Whether the same call was made before and all its files lie there."""
        kept = self._load()
        if kept.get("plan") != self._plan or self._plan["source"] is None:
            return False
        shards = load_index(self._place.with_name(self._place.name + INDEX))
        return all(self._lies_there(shard) for shard in shards)

    def begin(self) -> None:
        """Take over what an interrupted call has finished, and remove what it has not."""
        kept = self._load()
        if kept.get("plan") == self._plan and self._plan["source"] is not None and self._plan["rows"] is not None:
            entries = {int(number): _shard(entry) for number, entry in kept.get("done", {}).items()}
            self.done = {number: shard for number, shard in entries.items() if self._lies_there(shard)}
        for scratch in self._place.parent.glob(f".{self._place.name}-*.tmp"):
            match = re.fullmatch(r"\.(.+)\.(\d+)\.tmp", scratch.name)
            if match and _ours(self._place.name, match[1]) and not Path(f"/proc/{match[2]}").exists():
                scratch.unlink(missing_ok=True)
        self._save()

    def keep(self, number: int, shard: Shard) -> None:
        """Note a finished shard."""
        with self._lock:
            self.done[number] = shard
            self._save()

    def finish(self) -> None:
        """The index holds the shards now; only what they were made from is kept."""
        write_json(self._file, {"plan": self._plan})

    def _lies_there(self, shard: Shard) -> bool:
        with suppress(OSError):
            return (self._place.parent / shard.name).stat().st_size == shard.bytes
        return False

    def _load(self) -> dict[str, Any]:
        with suppress(OSError, ValueError):
            value = json.loads(self._file.read_text(encoding="utf-8"))
            if isinstance(value, dict):
                return value
        return {}

    def _save(self) -> None:
        write_json(self._file, {"plan": self._plan, "done": {str(n): asdict(s) for n, s in self.done.items()}})


def _shard(entry: dict[str, Any]) -> Shard:
    """As `asdict` made it."""
    stride = entry.get("stride")
    return Shard(**{**entry, "stride": Stride.from_json(stride) if stride else None})


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Alone at this place. Raises DataError where another process writes here."""
    with place.with_name(f".{place.name}.writing.lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(f"another process is writing {place}") from None
        yield


def _ours(name: str, file: str) -> bool:
    return re.fullmatch(re.escape(name) + r"-\d{5,}-of-\d{5,}\.tfrecord", file) is not None


def _processes(asked: int | None, source: Source, layout: Layout, shards: int) -> int:
    """As many as asked; else one a processor where rows are dear to write (packed, text, lists), and one where not."""
    if asked is not None:
        return max(1, min(asked, shards))
    dear = layout.compression != "none" or any(f.variable or f.dtype == "string" for f in layout.schema.values())
    if not dear or (source.rows is not None and source.rows < _FEW_ROWS):
        return 1
    return min(len(os.sched_getaffinity(0)), shards) if hasattr(os, "sched_getaffinity") else 1
