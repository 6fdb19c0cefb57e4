"""The keys of the embedded store: their values, locks and indexes. No time, no threads.

The rules are those of Consul 1.8.7's state store, as seen from outside.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from yurt.kv.values import Entry

if TYPE_CHECKING:
    from collections.abc import Sequence

TOMBSTONE_LIMIT = 4096
"""How many deletions are remembered one by one; the oldest half is forgotten beyond that."""


class Table:
    """Keys by name. Every write is given its index; `changed` collects the keys it really changed."""

    def __init__(self, last_index: int = 0) -> None:
        self.entries: dict[str, Entry] = {}
        self.last_index = last_index
        self.changed: set[str] = set()
        self._tombstones: dict[str, int] = {}
        self._undo: list[tuple[str, Entry | None, int | None]] | None = None
        self._undo_index = 0

    # Reading

    def list(self, prefix: str) -> list[Entry]:
        """Entries under a prefix, in order."""
        if not prefix:
            return [self.entries[key] for key in sorted(self.entries)]
        return [self.entries[key] for key in sorted(k for k in self.entries if k.startswith(prefix))]

    def find(self, key: str, *, recurse: bool) -> Sequence[Entry]:
        """The entry of a key, or with `recurse` those under it as a prefix."""
        if recurse:
            return self.list(key)
        entry = self.entries.get(key)
        return [entry] if entry else []

    def index_of(self, key: str, *, recurse: bool) -> tuple[int, bool]:
        """The index of a key or prefix and whether anything is there.

        What exists has its own index, raised by deletes under the prefix. What does not exist has the
        index of the whole table: it moves with every write.
        """
        if not recurse:
            entry = self.entries.get(key)
            return (entry.modify_index, True) if entry else (max(1, self.last_index), False)
        index = max((e.modify_index for k, e in self.entries.items() if k.startswith(key)), default=0)
        if not index:
            return max(1, self.last_index), False
        dead = max((i for k, i in self._tombstones.items() if k.startswith(key)), default=0)
        return max(index, dead), True

    # Writing

    def set(self, key: str, value: bytes, flags: int, index: int) -> Entry:
        """Set a key, whoever holds its lock; the holder stays, the count of locks starts anew."""
        old = self.entries.get(key)
        if old is None:
            return self._store(Entry(key, value, index, index, flags=flags))
        return self._store(replace(old, value=value, flags=flags, modify_index=index, lock_index=0))

    def cas(self, key: str, value: bytes, flags: int, expected: int, index: int) -> Entry | None:
        """Set a key if its modify index is `expected` (0: if it does not exist)."""
        old = self.entries.get(key)
        if (old.modify_index if old else 0) != expected:
            return None
        return self.set(key, value, flags, index)

    def lock(self, key: str, value: bytes, flags: int, session: str, index: int) -> Entry | None:
        """Set a key and give its lock to a session; None where another holds it."""
        old = self.entries.get(key)
        if old is None:
            return self._store(Entry(key, value, index, index, 1, flags, session))
        if old.session not in (None, session):
            return None
        lock_index = old.lock_index + (old.session is None)
        return self._store(Entry(key, value, index, old.create_index, lock_index, flags, session))

    def unlock(self, key: str, value: bytes, flags: int, session: str, index: int) -> Entry | None:
        """Set a key and free its lock; None where this session does not hold it."""
        old = self.entries.get(key)
        if old is None or old.session != session:
            return None
        return self._store(Entry(key, value, index, old.create_index, old.lock_index, flags, None))

    def free(self, key: str, index: int) -> None:
        """Free the lock of a key and keep its value."""
        self._store(replace(self.entries[key], session=None, modify_index=index))

    def delete(self, key: str, index: int) -> None:
        """Delete a key; nothing happens where there is none."""
        old = self.entries.get(key)
        if old is None:
            return
        self._note(key, old)
        del self.entries[key]
        self._tombstones.pop(key, None)
        self._tombstones[key] = index
        if len(self._tombstones) > TOMBSTONE_LIMIT and self._undo is None:
            for forgotten in list(self._tombstones)[: TOMBSTONE_LIMIT // 2]:
                del self._tombstones[forgotten]
        self._moved(key, index)

    def delete_cas(self, key: str, expected: int, index: int) -> bool:
        """Delete a key at this modify index; True also where there was none."""
        old = self.entries.get(key)
        if old is None:
            return True
        if old.modify_index != expected:
            return False
        self.delete(key, index)
        return True

    def delete_prefix(self, prefix: str, index: int) -> None:
        """Delete all keys under a prefix."""
        for key in [k for k in self.entries if k.startswith(prefix)]:
            self.delete(key, index)

    # All or nothing

    def begin(self) -> None:
        """Remember what is overwritten from here on."""
        self._undo = []
        self._undo_index = self.last_index

    def commit(self) -> None:
        """Keep what was written since `begin`."""
        self._undo = None

    def roll_back(self) -> None:
        """Take back what was written since `begin`."""
        for key, entry, tombstone in reversed(self._undo or []):
            if entry is None:
                self.entries.pop(key, None)
            else:
                self.entries[key] = entry
            if tombstone is None:
                self._tombstones.pop(key, None)
            else:
                self._tombstones[key] = tombstone
        self.last_index = self._undo_index
        self.changed.clear()
        self._undo = None

    def _store(self, entry: Entry) -> Entry:
        old = self.entries.get(entry.key)
        if old is not None and replace(old, modify_index=entry.modify_index) == entry:
            return old  # the same value: no new index, nobody is woken
        self._note(entry.key, old)
        self.entries[entry.key] = entry
        self._moved(entry.key, entry.modify_index)
        return entry

    def _note(self, key: str, old: Entry | None) -> None:
        if self._undo is not None:
            self._undo.append((key, old, self._tombstones.get(key)))

    def _moved(self, key: str, index: int) -> None:
        self.last_index = index
        self.changed.add(key)
