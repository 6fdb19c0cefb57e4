"""Random sequences of operations: a model of a few lines, the state, the embedded store and a real Consul
have to agree on every result and on everything that is in the store after every step.

Index numbers differ from store to store, so an index is compared by the step at which it was first seen.
"""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from yurt.kv import Op, SessionGone, Store
from yurt.kv.state import State

NAMES = ["a", "a/x", "a/y", "b"]
PREFIXES = ["", "a", "a/", "c"]
VALUES = [b"", b"1", b"2"]
SESSIONS = ["s0", "s1"]
AGES = ["fresh", "stale", "zero"]

name, value, flags = st.sampled_from(NAMES), st.sampled_from(VALUES), st.integers(0, 1)
session, age = st.sampled_from(SESSIONS), st.sampled_from(AGES)
simple = st.one_of(
    st.tuples(st.just("set"), name, value, flags),
    st.tuples(st.just("cas"), name, value, flags, age),
    st.tuples(st.just("delete"), name),
    st.tuples(st.just("delete-cas"), name, age),
    st.tuples(st.just("lock"), name, value, session),
    st.tuples(st.just("unlock"), name, value, session),
)
check = st.one_of(
    st.tuples(st.just("get"), name),
    st.tuples(st.just("get-tree"), st.sampled_from(PREFIXES[1:])),
    st.tuples(st.just("check-index"), name, age),
    st.tuples(st.just("check-session"), name, session),
    st.tuples(st.just("check-not-exists"), name),
)
step = st.one_of(
    simple,
    simple,
    st.tuples(st.just("delete-tree"), st.sampled_from(PREFIXES[1:])),
    st.tuples(st.just("txn"), st.lists(st.one_of(simple, check), min_size=1, max_size=4)),
    st.tuples(st.just("open"), session, st.sampled_from(["release", "delete"])),
    st.tuples(st.just("end"), session),
)
steps = st.lists(step, min_size=1, max_size=25)


class Driver:
    """Runs steps on a store and says what it saw, in terms that are the same for every store."""

    def __init__(self, store, prefix):
        self.store, self.prefix = store, prefix
        self.sessions = {name: "00000000-0000-0000-0000-00000000000" + name[1] for name in SESSIONS}
        self.names = {None: None}
        self.born = {}
        self.entries = {}
        self.step = 0

    def run(self, steps):
        return [self.observe(one) for one in steps]

    def observe(self, one):
        self.step += 1
        result = self.apply(one)
        found = self.store.list(self.prefix)
        self.entries = {e.key.removeprefix(self.prefix): e for e in found}
        return one, result, [self.seen(e) for e in found]

    def seen(self, entry):
        """An entry without numbers that only this store knows."""
        born = [self.born.setdefault(i, self.step) for i in (entry.create_index, entry.modify_index)]
        holder = self.names.get(entry.session)
        return (entry.key.removeprefix(self.prefix), entry.value, entry.flags, entry.lock_index, holder, *born)

    def index(self, name, age):
        entry = self.entries.get(name)
        if age == "zero" or entry is None:
            return 0
        return entry.modify_index if age == "fresh" else entry.modify_index - 1

    def apply(self, one):
        store, key = self.store, self.prefix + one[1] if isinstance(one[1], str) else ""
        match one:
            case ("set", _, value, flags):
                return store.put(key, value, flags=flags)
            case ("cas", name, value, flags, age):
                return store.put(key, value, flags=flags, cas=self.index(name, age))
            case ("delete", _):
                return store.delete(key)
            case ("delete-cas", name, age):
                return store.delete(key, cas=self.index(name, age))
            case ("delete-tree", _):
                return store.delete_prefix(key)
            case ("lock", _, value, session):
                try:
                    return store.acquire(key, value, self.sessions[session])
                except SessionGone:
                    return "gone"
            case ("unlock", _, value, session):
                return store.release(key, value, self.sessions[session])
            case ("open", session, behavior):
                self.sessions[session] = store.session_create(60, name=session, behavior=behavior)
                again = sum(known.startswith(session) for known in self.names.values() if known)
                self.names[self.sessions[session]] = session + "'" * again
                return None
            case ("end", session):
                return store.session_destroy(self.sessions[session])
            case ("txn", ops):
                result = store.txn([self.op(op) for op in ops])
                return result.ok, [self.seen(e) for e in result.entries], [e.op_index for e in result.errors]
        raise AssertionError(one)

    def op(self, one):
        verb, name, *rest = one
        key = self.prefix + name
        match verb:
            case "set":
                return Op(verb, key, rest[0], flags=rest[1])
            case "cas":
                return Op(verb, key, rest[0], self.index(name, rest[2]), flags=rest[1])
            case "delete-cas" | "check-index":
                return Op(verb, key, index=self.index(name, rest[0]))
            case "lock" | "unlock":
                return Op(verb, key, rest[0], session=self.sessions[rest[1]])
            case "check-session":
                return Op(verb, key, session=self.sessions[rest[0]])
        return Op(verb, key)


class Model:
    """The rules once more, as plainly as they can be written: name -> [value, flags, locks, holder, made, moved]."""

    def __init__(self):
        self.keys, self.sessions, self.labels, self.step = {}, {}, {}, 0

    def run(self, steps):
        out = []
        for number, one in enumerate(steps, 1):
            self.step = number
            result = self.apply(one)
            out.append((one, result, self.tree("")))
        return out

    def tree(self, prefix):
        return [(k, *self.keys[k]) for k in sorted(self.keys) if k.startswith(prefix)]

    def write(self, name, value, flags, holder="same", locks=0):
        old = self.keys.get(name)
        new = [value, flags, locks, holder, self.step, self.step]
        if old:
            new[4] = old[4]
            if holder == "same":
                new[3] = old[3]
        elif holder == "same":
            new[3] = None
        if old and new[:5] == old[:5]:
            return True
        self.keys[name] = new
        return True

    def fits(self, name, age, seen):
        entry = seen.get(name)
        wanted = 0 if age == "zero" or entry is None else entry[5] if age == "fresh" else "stale"
        now = self.keys.get(name)
        return (now[5] if now else 0) == wanted

    def apply(self, one, seen=None):
        seen = self.keys.copy() if seen is None else seen
        match one:
            case ("set", name, value, flags):
                return self.write(name, value, flags)
            case ("cas", name, value, flags, age):
                return self.fits(name, age, seen) and self.write(name, value, flags)
            case ("delete", name):
                self.keys.pop(name, None)
                return True
            case ("delete-cas", name, age):
                if name not in self.keys:
                    return True
                return self.fits(name, age, seen) and self.keys.pop(name) is not None
            case ("delete-tree", prefix):
                for name in [k for k in self.keys if k.startswith(prefix)]:
                    del self.keys[name]
                return None
            case ("lock", name, value, session):
                if session not in self.sessions:
                    return "gone"
                holder = self.keys[name][3] if name in self.keys else None
                if holder not in (None, self.labels[session]):
                    return False
                locks = (self.keys[name][2] if name in self.keys else 0) + (holder is None)
                return self.write(name, value, 0, self.labels[session], locks)
            case ("unlock", name, value, session):
                if name not in self.keys or self.keys[name][3] != self.labels.get(session, "?"):
                    return False
                return self.write(name, value, 0, None, self.keys[name][2])
            case ("open", session, behavior):
                self.sessions[session] = behavior
                self.labels[session] = self.labels[session] + "'" if session in self.labels else session
                return None
            case ("end", session):
                behavior = self.sessions.pop(session, None)
                for name in [k for k, e in self.keys.items() if e[3] and e[3] == self.labels.get(session)]:
                    if behavior == "delete":
                        del self.keys[name]
                    else:
                        self.write(name, *self.keys[name][:2], None, self.keys[name][2])
                return None
            case ("get", name):
                return name in self.keys
            case ("get-tree", _):
                return True
            case ("check-index", name, age):
                return name in self.keys and self.fits(name, age, seen)
            case ("check-session", name, session):
                return name in self.keys and self.keys[name][3] == self.labels.get(session, "?")
            case ("check-not-exists", name):
                return name not in self.keys
            case ("txn", ops):
                return self.txn(ops, seen)
        raise AssertionError(one)

    def txn(self, ops, seen):
        before = {name: list(entry) for name, entry in self.keys.items()}
        entries, errors = [], []
        for number, op in enumerate(ops):
            if self.apply(op, seen) is not True:  # a session may be "gone"
                errors.append(number)
                continue
            verb, name = op[:2]
            if verb == "get-tree":
                entries += self.tree(name)
            elif verb == "get":
                entries.append((name, *self.keys[name]))
            elif verb not in ("delete", "delete-cas", "check-not-exists"):
                entries.append((name, b"", *self.keys[name][1:]))
        if errors:
            self.keys = before
            return False, [], errors
        return True, entries, []


def one_life(steps):
    """Only sessions that are opened once at a time: the model has no name for a second one."""
    live = set()
    for one in steps:
        if one[0] == "open":
            if one[1] in live:
                continue
            live.add(one[1])
        elif one[0] == "end":
            live.discard(one[1])
        yield one


runs = steps.map(lambda s: list(one_life(s)))


@settings(max_examples=400, deadline=None)
@given(runs)
def test_the_state_does_what_the_model_says(steps):
    assert Driver(State(), "p/").run(steps) == Model().run(steps)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(runs)
def test_the_embedded_store_does_what_the_state_does(embedded_store, steps):
    assert Driver(embedded_store, fresh()).run(steps) == Driver(State(), "p/").run(steps)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps)
def test_consul_does_what_the_state_does(consul_store, steps):
    assert Driver(consul_store, fresh()).run(steps) == Driver(State(), "p/").run(steps)


_numbers = itertools.count()
_run = random.SystemRandom().randrange(10**9)


def fresh():
    return f"seq-{_run}-{next(_numbers)}/"


@pytest.fixture
def embedded_store(embedded):
    with Store(embedded.address, embedded.token) as store:
        yield store


@pytest.fixture
def consul_store(consul):
    with Store(consul.address, consul.token) as store:
        yield store
