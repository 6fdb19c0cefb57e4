"""What is said and done while the store is not there: by agents, and by those who take others for silent."""

from __future__ import annotations

import threading
import time

from tests.conftest import TOKEN, free_ports
from tests.contract.test_values import SPEC
from tests.support.runs import wait_until
from yurt.agent.silence import Silence, watch_silence
from yurt.errors import StoreError
from yurt.kv import Store
from yurt.kv.run_store import RunStore
from yurt.kv.server import EmbeddedStore
from yurt.kv.values import Entry
from yurt.kv.watching import watch_state


def test_a_store_that_comes_late_is_waited_for_and_that_is_said(monkeypatch):
    monkeypatch.setattr("yurt.kv.watching._SAY_AFTER_S", 0.3)
    [port] = free_ports(1)
    said, seen, lost = [], [], threading.Event()
    store = Store(f"http://127.0.0.1:{port}", TOKEN)
    watch_state(
        store, SPEC.run_id, on_state=seen.append, lost_after_s=None, on_lost=lost.set, on_wait=said.append
    )  # fmt: skip
    wait_until(lambda: said, 10)
    nobody = f"nobody listens at 127.0.0.1:{port}, where the key-value store should be"
    assert said == [f"waiting for the key-value store at http://127.0.0.1:{port}: {nobody}"]
    assert not seen
    with EmbeddedStore(token=TOKEN, port=port):
        RunStore(Store(f"http://127.0.0.1:{port}", TOKEN), SPEC).create()
        wait_until(lambda: seen, 10)
        wait_until(lambda: len(said) == 2, 10)
        assert said[1].startswith("the key-value store is back after ")
        store.close()
    assert not lost.is_set()


def test_nobody_is_taken_for_silent_for_the_time_in_which_the_store_was_away():
    silence = Silence(60)
    assert silence.silent({"worker/0": 5}, 0.0) == []
    silence.forget()  # a look that failed
    assert silence.silent({"worker/0": 5}, 90.0) == [], "back after 90 s, before the next beat"
    assert silence.silent({"worker/0": 5}, 149.0) == []
    assert silence.silent({"worker/0": 5}, 150.0) == ["worker/0"]


class _Away:
    """A run store that is away for as many looks as make somebody silent, and then has the same beats as before."""

    def __init__(self) -> None:
        self.spec = SPEC
        self.store = self
        self.looks = 0
        self.back_at = 0.0
        self.taken_at: float | None = None

    def list(self, prefix: str) -> list[Entry]:
        self.looks += 1
        if 2 < self.looks <= 12:
            raise StoreError("away")
        if self.looks == 13:
            self.back_at = time.monotonic()
        return [Entry(f"{prefix}worker/0", b"", 5, 5)]

    def read(self) -> None:
        self.taken_at = self.taken_at or time.monotonic()
        raise StoreError("enough")


def test_who_watches_for_silence_counts_anew_after_the_store_was_away():
    away, after_s = _Away(), 0.6
    watch_silence(away, after_s, lambda: None)
    wait_until(lambda: away.taken_at, 20, "the silence")
    assert away.taken_at - away.back_at >= after_s
