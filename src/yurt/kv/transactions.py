"""What each operation of a transaction does to the table, with Consul's words for what went wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from yurt.kv.values import TxnError, TxnResult

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from yurt.kv.table import Table
    from yurt.kv.values import Entry, Op


class _OpError(Exception):
    """One operation cannot be done."""


def apply(
    ops: Sequence[Op],
    table: Table,
    index: int,
    *,
    lives: Callable[[str], bool],
    delayed: Callable[[str], bool],
) -> TxnResult:
    """Do all of them at `index`, or none; `lives` is asked about sessions, `delayed` about locks.

    Like Consul 1.8.7, a later operation sees the earlier ones, and all errors are reported, not the first.
    """
    errors = [
        TxnError(n, f'failed to lock key "{op.key}" due to lock delay')
        for n, op in enumerate(ops)
        if op.verb == "lock" and delayed(op.key)
    ]
    if errors:
        return TxnResult(ok=False, errors=tuple(errors))
    entries: list[Entry] = []
    table.begin()
    for number, op in enumerate(ops):
        try:
            entries += _apply(op, table, index, lives)
        except _OpError as error:
            errors.append(TxnError(number, str(error)))
    if errors:
        table.roll_back()
        return TxnResult(ok=False, errors=tuple(errors))
    table.commit()
    return TxnResult(ok=True, entries=tuple(entries))


def _apply(op: Op, table: Table, index: int, lives: Callable[[str], bool]) -> list[Entry]:
    key, session = op.key, op.session or ""
    match op.verb:
        case "set":
            return [_bare(table.set(key, op.value, op.flags, index))]
        case "cas":
            done = table.cas(key, op.value, op.flags, op.index, index)
            return [_bare(_need(done, f'failed to set key "{key}", index is stale'))]
        case "lock":
            if not session:
                raise _OpError("missing session")
            if not lives(session):
                raise _OpError(f'invalid session "{session}"')
            done = table.lock(key, op.value, op.flags, session, index)
            return [_bare(_need(done, f'failed to lock key "{key}", lock is already held'))]
        case "unlock":
            if not session:
                raise _OpError("missing session")
            done = table.unlock(key, op.value, op.flags, session, index)
            what = f'failed to unlock key "{key}", lock isn\'t held, or is held by another session'
            return [_bare(_need(done, what))]
        case "delete":
            table.delete(key, index)
        case "delete-tree":
            table.delete_prefix(key, index)
        case "delete-cas":
            if not table.delete_cas(key, op.index, index):
                raise _OpError(f'failed to delete key "{key}", index is stale')
        case "get":
            return [_need(table.entries.get(key), f'key "{key}" doesn\'t exist')]
        case "get-tree":
            return table.list(key)
        case "check-index":
            found = _need(table.entries.get(key), f'failed to check index, key "{key}" doesn\'t exist')
            if found.modify_index != op.index:
                raise _OpError(
                    f'failed index check for key "{key}", current modify index {found.modify_index} != {op.index}'
                )
            return [_bare(found)]
        case "check-session":
            found = _need(table.entries.get(key), f'failed to check session, key "{key}" doesn\'t exist')
            if found.session != op.session:
                raise _OpError(
                    f'failed session check for key "{key}", current session "{found.session or ""}" != "{session}"'
                )
            return [_bare(found)]
        case "check-not-exists":
            if key in table.entries:
                raise _OpError(f'key "{key}" exists')
        case _:
            raise _OpError(f'unknown KV verb "{op.verb}"')
    return []


def _need(entry: Entry | None, what: str) -> Entry:
    if entry is None:
        raise _OpError(what)
    return entry


def _bare(entry: Entry) -> Entry:
    """Writes and checks answer without the value."""
    return replace(entry, value=b"")
