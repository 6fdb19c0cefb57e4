"""Trying again, and the tree of errors."""

from __future__ import annotations

import pytest

from yurt.errors import LauncherError, StoreError
from yurt.kv import SessionGone, StoreBusy, StoreDenied, StoreRefused, errors, retrying


class Turned:
    """A clock that only sleeping turns."""

    def __init__(self):
        self.now_s, self.slept_s = 0.0, []

    def __call__(self):
        return self.now_s

    def sleep(self, s):
        self.slept_s.append(s)
        self.now_s += s


def test_retrying_pauses_longer_and_longer_until_it_works():
    clock, left = Turned(), [StoreBusy("x")] * 8

    def call():
        if left:
            raise left.pop()
        return "done"

    assert retrying(call, deadline_s=60, clock=clock, sleep=clock.sleep) == "done"
    for pause_s, longest_s in zip(clock.slept_s, [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2, 2], strict=True):
        assert longest_s / 2 <= pause_s <= longest_s


def test_retrying_ends_with_the_last_error_at_the_deadline():
    clock = Turned()

    def call():
        raise StoreRefused("x", address="a:1")

    with pytest.raises(StoreRefused):
        retrying(call, deadline_s=5, clock=clock, sleep=clock.sleep)
    assert clock.now_s == 5


@pytest.mark.parametrize("error", [StoreDenied("x"), SessionGone("x"), ValueError("x")])
def test_retrying_does_not_repeat_what_cannot_help(error):
    calls = []

    def call():
        calls.append(1)
        raise error

    with pytest.raises(type(error)):
        retrying(call, deadline_s=5, clock=Turned(), sleep=lambda _: None)
    assert calls == [1]


def test_every_error_is_a_store_error_with_an_exit_code():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, StoreError)]
    assert len(kinds) == 10
    for kind in kinds:
        assert issubclass(kind, LauncherError)
        assert kind("x").exit_code == 6
        assert kind.__name__ in errors.__doc__
