"""Waiting for Consul before a run: bounded, told, and ended by whoever has had enough."""

from __future__ import annotations

import threading
import time

import pytest

from tests.conftest import TOKEN, free_ports
from yurt.errors import Cancelled
from yurt.kv.errors import StoreDenied, StoreRefused
from yurt.kv.server import EmbeddedStore
from yurt.launcher import consul


@pytest.fixture
def port(monkeypatch):
    [port] = free_ports(1)
    monkeypatch.setenv("CONSUL_HTTP_ADDR", f"127.0.0.1:{port}")
    monkeypatch.setenv("CONSUL_HTTP_TOKEN", TOKEN)
    monkeypatch.setattr(consul, "_QUIET_S", 0.2)
    monkeypatch.setattr(consul, "_PAUSE_S", 0.05)
    return port


def go_on(seconds):
    time.sleep(seconds)


def test_one_that_comes_late_is_waited_for(port):
    told = []
    stop = threading.Event()

    def serve():
        while not told:
            time.sleep(0.01)
        with EmbeddedStore(token=TOKEN, port=port):
            stop.wait(20)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        consul.wait_for("k", pause=go_on, tell=told.append)
    finally:
        stop.set()
        thread.join()
    [text] = told
    assert text.startswith(f"yurt: waiting for Consul at http://127.0.0.1:{port}, up to 10 s (nobody listens")


def test_a_wrong_address_is_said_after_seconds(port, monkeypatch):
    monkeypatch.setattr(consul, "REFUSED_S", 0.5)
    with pytest.raises(StoreRefused, match=r"nobody listens at .*keeps a run's state in Consul") as caught:
        consul.wait_for("k", pause=go_on, tell=lambda _: None)
    assert "CONSUL_HTTP_ADDR" in caught.value.hint


def test_a_person_may_end_it(port):
    asked = iter([None, None, "Ctrl-C"])
    with pytest.raises(Cancelled, match=r"^stopped by Ctrl-C while it waited for Consul at http://127\.0\.0\.1"):
        consul.wait_for("k", pause=lambda _: next(asked), tell=lambda _: None)


def test_a_refusal_is_final(port, monkeypatch):
    monkeypatch.setenv("CONSUL_HTTP_TOKEN", "another")
    with EmbeddedStore(token=TOKEN, port=port), pytest.raises(StoreDenied):
        consul.wait_for("k", pause=lambda _: pytest.fail("nothing is waited for"), tell=lambda _: None)
