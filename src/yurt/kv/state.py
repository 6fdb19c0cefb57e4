"""The embedded store's state: keys, locks, sessions, indexes, and who waits for what.

One lock guards all of it. Whoever waits is woken one by one, by a call of their own: a write touches those
whose key or prefix it changed and leaves the other waiters asleep. The same methods as
`yurt.kv.client.Store`, so that a program holding the store needs no HTTP to use it. Sessions end when
anything is called after their time; `next_expiry_s` says when to call `tick` if nobody else does.
"""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING

from yurt.kv import transactions
from yurt.kv.errors import SessionGone, StoreClosed, StoreRejected, StoreTooLarge
from yurt.kv.paths import check_key
from yurt.kv.sessions import Sessions
from yurt.kv.table import Table
from yurt.kv.values import (
    LOCK_DELAY_MAX_S,
    SESSION_TTL_MAX_S,
    SESSION_TTL_MIN_S,
    TXN_LIMIT_OPS,
    VALUE_LIMIT_BYTES,
    WAIT_LIMIT_S,
    Snapshot,
)
from yurt.kv.watch import StoreWatch

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from yurt.kv.values import Behavior, Entry, Op, SessionInfo, TxnResult


_Names = list[str]  # inside of a class with a method `list` the name is taken


def random_id() -> str:
    """A random UUID, without the module `uuid`."""
    text = os.urandom(16).hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class Waiter:
    """Somebody who waits for a key or prefix. `wake` is called once, under the state's lock."""

    __slots__ = ("key", "missing", "recurse", "wake")

    def __init__(self, key: str, wake: Callable[[], object], *, recurse: bool, missing: bool) -> None:
        self.key, self.wake, self.recurse, self.missing = key, wake, recurse, missing

    def concerns(self, changed: set[str]) -> bool:
        """Whether one of these changes is what it waits for; what is missing waits for any."""
        if self.missing:
            return True
        if self.recurse:
            return any(key.startswith(self.key) for key in changed)
        return self.key in changed


class State:
    """An empty store. `clock` gives seconds, `new_id` session ids; `min_ttl_s` is Consul's 10 s.

    Every change has a higher index than `first_index`.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        new_id: Callable[[], str] = random_id,
        min_ttl_s: float = SESSION_TTL_MIN_S,
        first_index: int = 1,
    ) -> None:
        self._clock = clock
        self._new_id = new_id
        self._min_ttl_s = min_ttl_s
        self._lock = threading.Lock()
        self._table = Table(first_index if first_index > 1 else 0)
        self._sessions = Sessions()
        self._delays_s: dict[str, float] = {}  # no lock on this key before then
        self._index = first_index
        self._waiters: set[Waiter] = set()
        self._closed = False
        self.on_nearer_expiry: Callable[[], object] | None = None
        """Called, under the lock, when `next_expiry_s` has come nearer."""

    # Keys

    def get(self, key: str) -> Entry | None:
        """The key, or None."""
        with self._lock:
            self._expire()
            return self._table.entries.get(check_key(key))

    def list(self, prefix: str) -> list[Entry]:
        """All keys under a prefix, in order."""
        with self._lock:
            self._expire()
            return self._table.list(check_key(prefix, prefix=True))

    def keys(self, prefix: str) -> _Names:
        """Their names alone."""
        return [entry.key for entry in self.list(prefix)]

    def put(self, key: str, value: bytes, *, cas: int | None = None, flags: int = 0) -> bool:
        """Set a key, with `cas` only at that modify index; see `Store.put`."""
        self._check(key, value)
        with self._lock:
            index = self._begin()
            if cas is None:
                self._table.set(key, value, flags, index)
                done = True
            else:
                done = self._table.cas(key, value, flags, cas, index) is not None
            self._wake()
            return done

    def delete(self, key: str, *, cas: int | None = None) -> bool:
        """Delete a key, with `cas` only at that modify index; True also where there was none."""
        check_key(key)
        with self._lock:
            index = self._begin()
            if cas is None:
                self._table.delete(key, index)
                done = True
            else:
                done = self._table.delete_cas(key, cas, index)
            self._wake()
            return done

    def delete_prefix(self, prefix: str) -> None:
        """Delete all keys under a prefix, which may not be empty."""
        if not prefix:
            raise ValueError("an empty prefix would delete everything in the store")
        check_key(prefix, prefix=True)
        with self._lock:
            self._table.delete_prefix(prefix, self._begin())
            self._wake()

    def acquire(self, key: str, value: bytes, session: str, *, flags: int = 0) -> bool:
        """Lock a key for a session and set it. Raises SessionGone."""
        self._check(key, value)
        with self._lock:
            index = self._begin()
            if self._delayed(key):
                return False
            if self._sessions.get(session) is None:
                raise SessionGone("the session is gone: it expired or was destroyed")
            done = self._table.lock(key, value, flags, session, index) is not None
            self._wake()
            return done

    def release(self, key: str, value: bytes, session: str, *, flags: int = 0) -> bool:
        """Unlock a key and set it; False where this session does not hold it."""
        self._check(key, value)
        with self._lock:
            done = self._table.unlock(key, value, flags, session, self._begin()) is not None
            self._wake()
            return done

    def txn(self, ops: Sequence[Op]) -> TxnResult:
        """Apply all operations at one index, or none."""
        if len(ops) > TXN_LIMIT_OPS:
            raise StoreTooLarge(f"a transaction of {len(ops)} operations is over the limit of {TXN_LIMIT_OPS}")
        for op in ops:
            self._check(op.key, op.value, prefix=op.verb in ("get-tree", "delete-tree"))
        with self._lock:
            index = self._begin()
            result = transactions.apply(
                ops, self._table, index, lives=lambda s: self._sessions.get(s) is not None, delayed=self._delayed
            )
            self._wake()
            return result

    # Sessions

    def session_create(
        self,
        ttl_s: float | None,
        *,
        name: str = "",
        behavior: Behavior = "release",
        lock_delay_s: float = 0.0,
    ) -> str:
        """Open a session. Raises StoreRejected for a TTL outside of the limits; None never ends by itself."""
        if ttl_s is not None and not self._min_ttl_s <= ttl_s <= SESSION_TTL_MAX_S:
            raise StoreRejected(
                f"Invalid Session TTL '{ttl_s:g}s', must be between [{self._min_ttl_s:g}s={SESSION_TTL_MAX_S:g}s]"
            )
        with self._lock:
            index = self._begin()
            session = self._new_id()
            nearer = self._sessions.open(
                session,
                name=name,
                ttl_s=ttl_s,
                behavior=behavior,
                lock_delay_s=lock_delay_s,
                index=index,
                now_s=self._clock(),
            )
            if nearer:
                for waiter in self._waiters:
                    waiter.wake()
                self._waiters.clear()
                if self.on_nearer_expiry is not None:
                    self.on_nearer_expiry()
            return session

    def session_renew(self, session: str) -> bool:
        """Start the TTL anew; False where the session is gone."""
        with self._lock:
            self._expire()
            return self._sessions.renew(session, self._clock())

    def session_destroy(self, session: str) -> None:
        """End a session now; an unknown one is no error."""
        with self._lock:
            self._end(session, self._begin())
            self._wake()

    def session_info(self, session: str) -> SessionInfo | None:
        """The session, or None where it is gone."""
        with self._lock:
            self._expire()
            return self._sessions.get(session)

    def session_list(self) -> Sequence[SessionInfo]:
        """All living sessions."""
        with self._lock:
            self._expire()
            return list(self._sessions)

    # Waiting

    def read(self, key: str, *, recurse: bool) -> Snapshot:
        """What is there and its index, without waiting."""
        with self._lock:
            self._expire()
            index, _ = self._table.index_of(key, recurse=recurse)
            return Snapshot(index, tuple(self._table.find(key, recurse=recurse)))

    def subscribe(self, key: str, index: int, wake: Callable[[], object], *, recurse: bool) -> Waiter | None:
        """Have `wake` called once when the key or prefix may have moved past `index`.

        None where it already has, or where the store has never been as far as `index`. It may be called for
        nothing: subscribe again to see. It is called by whoever writes, under the lock: it must neither block nor
        call back.
        """
        with self._lock:
            self._expire()
            now, exists = self._table.index_of(key, recurse=recurse)
            if now > index or index > self._index or self._closed:  # or of a store that was here before this one
                return None
            waiter = Waiter(key, wake, recurse=recurse, missing=not exists)
            self._waiters.add(waiter)
            return waiter

    def unsubscribe(self, waiter: Waiter) -> None:
        """Forget a waiter, woken or not."""
        with self._lock:
            self._waiters.discard(waiter)

    def watch(self, key: str, index: int, wait_s: float, recurse: bool = True) -> Snapshot:
        """Wait until something changed since `index`; see `Store.watch`. Raises StoreClosed."""
        return self._watch(key, index, wait_s, recurse=recurse, ended=lambda: False, event=threading.Event())

    def watcher(self, key: str, *, recurse: bool = True) -> StoreWatch:
        """A watch with an index of its own, which another thread can close."""
        event = threading.Event()
        ended = threading.Event()

        def look(index: int, wait_s: float) -> Snapshot:
            return self._watch(key, index, wait_s, recurse=recurse, ended=ended.is_set, event=event)

        def end() -> None:
            ended.set()
            event.set()

        return StoreWatch(look, end)

    @property
    def next_expiry_s(self) -> float | None:
        """When, in the clock's time, `tick` should be called at the latest; None: no need."""
        with self._lock:
            return self._sessions.next_end_s

    def tick(self) -> None:
        """End the sessions whose time is over."""
        with self._lock:
            self._expire()

    def close(self) -> None:
        """Wake everybody: waits under way and later ones raise StoreClosed. Reading goes on."""
        with self._lock:
            self._closed = True
            for waiter in self._waiters:
                waiter.wake()
            self._waiters.clear()

    # How

    def _watch(
        self,
        key: str,
        index: int,
        wait_s: float,
        *,
        recurse: bool,
        ended: Callable[[], bool],
        event: threading.Event,
    ) -> Snapshot:
        check_key(key, prefix=recurse)
        deadline_s = self._clock() + min(wait_s, WAIT_LIMIT_S)
        while True:
            if self._closed or ended():
                raise StoreClosed("the key-value store was closed")
            event.clear()
            waiter = self.subscribe(key, index, event.set, recurse=recurse) if index > 0 else None
            if waiter is None and not self._closed:
                break
            if waiter is not None:
                until_s = min(deadline_s, self.next_expiry_s or deadline_s)
                if not ended():  # set between the check above and the clear
                    event.wait(max(0.0, until_s - self._clock()))
                self.unsubscribe(waiter)
            if self._clock() >= deadline_s and not self._closed and not ended():
                break
        found = self.read(key, recurse=recurse)
        return found if found.index >= index else Snapshot(0, found.entries)

    def _check(self, key: str, value: bytes, *, prefix: bool = False) -> None:
        check_key(key, prefix=prefix)
        if len(value) > VALUE_LIMIT_BYTES:
            raise StoreTooLarge(f"the value of {key} has {len(value):,} bytes, the limit is {VALUE_LIMIT_BYTES:,}")

    def _begin(self) -> int:
        """Before every write: end what is over, take the next index."""
        self._expire()
        self._index += 1
        return self._index

    def _expire(self) -> None:
        over = self._sessions.ended(self._clock())
        for session in over:
            self._index += 1
            self._end(session, self._index)
        if over:
            self._wake()

    def _end(self, session: str, index: int) -> None:
        info = self._sessions.remove(session)
        if info is None:
            return
        now_s = self._clock()
        delay_s = min(info.lock_delay_s, LOCK_DELAY_MAX_S)
        self._delays_s = {key: until_s for key, until_s in self._delays_s.items() if until_s > now_s}
        for key in [k for k, e in self._table.entries.items() if e.session == session]:
            if info.behavior == "delete":
                self._table.delete(key, index)
            else:
                self._table.free(key, index)
            if delay_s > 0:
                self._delays_s[key] = now_s + delay_s

    def _delayed(self, key: str) -> bool:
        until_s = self._delays_s.get(key)
        if until_s is None:
            return False
        if self._clock() < until_s:
            return True
        del self._delays_s[key]
        return False

    def _wake(self) -> None:
        changed, self._table.changed = self._table.changed, set()
        if changed and self._waiters:
            for waiter in [w for w in self._waiters if w.concerns(changed)]:
                self._waiters.discard(waiter)
                waiter.wake()
