"""Joins a generation of a run: one seat a task, and one allocation on it."""

from __future__ import annotations

import enum
import os
import time
from dataclasses import dataclass, replace

from yurt.agent.ports import HeldPort, own_port
from yurt.contract.config import AgentConfig
from yurt.contract.decide import next_generation
from yurt.contract.spec import EVALUATOR
from yurt.contract.state import EXITED, JOINED, JOINING, LOST, Cause, Exit, Member, RunState
from yurt.contract.tf_config import join_host_port, split_host_port
from yurt.kv.run_store import RunStore


class Taken(enum.Enum):
    """Why there is no seat: the task has finished, or the state must move on first."""

    DONE = "done"
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Seat:
    """The member as stored, and the port that it announces."""

    member: Member
    port: HeldPort


def take_seat(store: RunStore, config: AgentConfig, state: RunState, port: HeldPort | None) -> Seat | Taken:
    """Announce this agent as its task's member of the state's generation.

    A seat that another allocation holds is taken over only once that one is marked lost: of two agents of one task
    (Nomad runs both for a while after a lost client returns) one joins. A lone task that comes back takes the
    address it had, since the gang knows that one; where it cannot, the gang starts again.
    """
    task = config.run.task(config.task)
    attempt = state.attempts.get(task.name, 0)
    other, index = store.member(state.generation, task.name)
    if store.is_done(task.name):
        if other is None:  # the others must not wait for it
            end = Exit(code=0, reason="exit", at=time.time(), attempt=attempt)
            done = Member(task.name, config.allocation, "", EXITED, attempt, config.placed_on, exit=end)
            store.put_member(state.generation, done, cas=0)
        elif other.allocation != config.allocation and other.published is None and task.name == config.run.deciding:
            # Its publisher went with the first allocation, and the model with it or not: that is for a person to see.
            store.put_member(state.generation, replace(other, status=LOST), cas=index)
        return Taken.DONE
    if other is not None and other.allocation != config.allocation:
        if other.status not in (EXITED, LOST):
            message = f"another allocation took over on {config.placed_on}"
            end = Exit(code=137, reason="lost", at=time.time(), attempt=other.attempt, message=message)
            store.put_member(state.generation, replace(other, status=LOST, exit=end), cas=index)
            return Taken.WAIT
        if other.exit is not None and other.attempt >= attempt:
            return Taken.WAIT
    if state.phase != JOINING and other is None and task.role != EVALUATOR:
        return Taken.WAIT  # the gang was whole without us: cannot be, unless the state is older than what we saw
    if port is None:
        try:
            if other is not None and state.phase != JOINING:
                port = HeldPort(config.bind_host, split_host_port(other.address)[1])
            else:
                port = own_port(config.bind_host, None if _was_taken(store, config, state) else config.port)
        except OSError:
            cause = Cause(task.name, state.generation, f"{task.name} came back at another address", time.time())
            now = time.time()
            store.change(
                lambda new: next_generation(config.run, new, cause, now) if new.generation == state.generation else None
            )
            return Taken.WAIT
    member = Member(
        task=task.name,
        allocation=config.allocation,
        address=join_host_port(config.host, port.port),
        status=JOINED,
        attempt=attempt,
        placed_on=config.placed_on,
        pid=os.getpid(),
    )
    if not store.put_member(state.generation, member, cas=index):
        port.close()
        return Taken.WAIT
    return Seat(member, port)


def _was_taken(store: RunStore, config: AgentConfig, state: RunState) -> bool:
    """Whether TensorFlow found the port that was set aside in use when it tried last: somebody else has it."""
    if config.port is None or state.generation == 0:
        return False
    before, _ = store.member(state.generation - 1, config.task)
    return before is not None and before.exit is not None and before.exit.reason == "port-taken"
