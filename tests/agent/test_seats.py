"""One seat a task: what happens when two agents of one task meet, or one comes back."""

from __future__ import annotations

import socket
import time
from dataclasses import replace

import pytest

from tests.agent.test_pieces import config
from tests.contract.test_values import SPEC
from yurt.agent.ports import HeldPort
from yurt.agent.seats import Seat, Taken, take_seat
from yurt.contract.spec import TaskSpec
from yurt.contract.state import EXITED, JOINING, LOST, RUNNING, STARTED, Exit, Member, RunState
from yurt.kv.client import Store
from yurt.kv.run_store import RunStore
from yurt.kv.server import EmbeddedStore

RUN = replace(
    SPEC,
    strategy="parameter-server",
    restart="on-failure",
    max_restarts=5,
    tasks=(TaskSpec("chief", 0, ("a",)), TaskSpec("worker", 0, ("a",)), TaskSpec("ps", 0, ("a",))),
    start_deadline_s=60.0,
    submitted_at=time.time(),
)


@pytest.fixture
def store():
    with EmbeddedStore(token="t") as server, Store(server.address, "t") as client:
        made = RunStore(client, RUN)
        made.create()
        yield made


@pytest.fixture
def take(store, tmp_path):
    seats = []

    def taken(task: str, allocation: str, state: RunState | None = None):
        own = config(tmp_path, run=RUN, task=task, allocation=allocation, host="127.0.0.1")
        seat = take_seat(store, own, state or store.read()[0], None)
        if isinstance(seat, Seat):
            seats.append(seat)
        return seat

    yield taken
    for seat in seats:
        seat.port.close()


def test_a_task_takes_its_seat_with_a_port_of_its_own(store, take):
    seat = take("worker/0", "one")
    member, _ = store.member(0, "worker/0")
    assert (member.allocation, member.address) == ("one", f"127.0.0.1:{seat.port.port}")


def test_a_second_allocation_drives_the_first_out_by_a_new_generation(store, take):
    take("worker/0", "one")
    assert take("worker/0", "two") is Taken.WAIT
    member, _ = store.member(0, "worker/0")
    assert (member.status, member.exit.reason) == (LOST, "lost")
    assert store.advance().generation == 1
    assert isinstance(take("worker/0", "two"), Seat)
    # The old one, wherever it still runs, finds its seat taken and takes it from nobody who lives in peace...
    assert take("worker/0", "one", store.read()[0]) is Taken.WAIT


def test_what_has_finished_is_not_run_again_and_nobody_waits_for_it(store, take):
    store.mark_done("worker/0", 0, 0)
    assert take("worker/0", "two") is Taken.DONE
    member, _ = store.member(0, "worker/0")
    assert (member.status, member.exit.code) == (EXITED, 0)


def running(store, *members: Member) -> RunState:
    for member in members:
        store.put_member(0, member)
    addresses = {member.task: member.address for member in members}
    cluster = {task.partition("/")[0]: [address] for task, address in addresses.items()}
    state, index = store.read()
    assert store.swap(replace(state, phase=RUNNING, cluster=cluster), index)
    return store.read()[0]


def lost(task: str, address: str) -> Member:
    return Member(task, "one", address, LOST, exit=Exit(code=137, reason="lost", at=time.time()))


def test_a_lone_worker_comes_back_at_the_address_that_the_gang_knows(store, take):
    first = take("worker/0", "one")
    address = first.member.address
    first.port.close()
    running(
        store, Member("chief/0", "c", "h:1", STARTED), Member("ps/0", "p", "h:2", STARTED), lost("worker/0", address)
    )
    state = store.advance()
    assert (state.generation, state.attempts) == (0, {"worker/0": 1})
    seat = take("worker/0", "two", state)
    assert (seat.member.address, seat.member.attempt) == (address, 1)


def test_a_lone_worker_that_cannot_have_its_address_starts_the_gang_again(store, take):
    first = take("worker/0", "one")  # its port stays bound: as if it were on another machine
    first.port.listen("hello")
    chief, ps = Member("chief/0", "c", "h:1", STARTED), Member("ps/0", "p", "h:2", STARTED)
    running(store, chief, ps, lost("worker/0", first.member.address))
    assert take("worker/0", "two", store.advance()) is Taken.WAIT
    state, _ = store.read()
    assert (state.generation, state.phase) == (1, JOINING)
    assert "came back at another address" in state.causes[-1].message


def free_port() -> int:
    port = HeldPort()
    port.close()
    return port.port


def taken_at(store, tmp_path, port, state=None):
    own = config(tmp_path, run=RUN, task="worker/0", allocation="one", host="127.0.0.1", port=port)
    seat = take_seat(store, own, state or store.read()[0], None)
    seat.port.close()
    return seat.port.port


def test_the_port_that_was_set_aside_is_taken(store, tmp_path):
    port = free_port()
    assert taken_at(store, tmp_path, port) == port
    member, _ = store.member(0, "worker/0")
    assert member.address == f"127.0.0.1:{port}"


def test_a_port_that_another_process_has_is_left_to_it(store, tmp_path):
    with socket.create_server(("", 0)) as other:
        port = other.getsockname()[1]
        assert taken_at(store, tmp_path, port) != port


def test_a_port_that_tensorflow_could_not_bind_is_not_tried_again_at_once(store, tmp_path):
    port = free_port()
    end = Exit(code=1, reason="port-taken", at=time.time())
    store.put_member(0, Member("worker/0", "one", f"127.0.0.1:{port}", EXITED, exit=end))
    state, _ = store.read()
    assert taken_at(store, tmp_path, port, replace(state, generation=1)) != port
    store.put_member(0, Member("worker/0", "one", f"127.0.0.1:{port}", EXITED, exit=replace(end, reason="exit")))
    assert taken_at(store, tmp_path, port, replace(state, generation=1)) == port
