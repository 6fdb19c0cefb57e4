"""Brings one task to where the run's state wants it: the agent's main loop.

Everything happens in one thread, as a reaction to the whole state: threads and signal handlers only put a call into
the queue, and after each one `_reconcile` compares what the state wants with what is here. So nothing depends on
having seen every change, and a store that is away for a while is asked again.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

from yurt.agent import environment as env
from yurt.agent.beginning import beginning
from yurt.agent.execution import Execution, write_whole
from yurt.agent.heartbeat import Heartbeat, read_progress
from yurt.agent.output import Output
from yurt.agent.peers import unreachable_peers
from yurt.agent.ports import HeldPort, greeting
from yurt.agent.preflight import Preflight, preflight
from yurt.agent.process import become_subreaper
from yurt.agent.publish import Publishing
from yurt.agent.seats import Taken, take_seat
from yurt.agent.silence import watch_silence
from yurt.agent.verdicts import wanting_legacy_keras
from yurt.contract import names
from yurt.contract.config import AgentConfig
from yurt.contract.decide import leave_s
from yurt.contract.progress import merged
from yurt.contract.spec import EVALUATOR
from yurt.contract.state import (
    CHECKING,
    CLOSING,
    EXITED,
    JOINED,
    JOINING,
    REACHABLE,
    RUNNING,
    STARTED,
    SUCCEEDED,
    Exit,
    Member,
    RunState,
)
from yurt.contract.sweep import sweep
from yurt.errors import StoreError
from yurt.kv.run_store import RunStore
from yurt.kv.watching import watch_members, watch_state

#: Seconds between SIGTERM and SIGKILL when the store, and with it the run, is gone.
_ORPHAN_GRACE_S: Final = 2.0
#: Seconds between SIGTERM and SIGKILL for a task that outstays the end of its run.
_LEAVE_GRACE_S: Final = 1.0
#: Seconds before the end of a stopped run's grace time at which servers end in any case.
_LAST_S: Final = 1.0
#: Seconds after which a store that did not answer is asked again.
_RETRY_S: Final = 0.5
#: Seconds after a deadline until an agent acts on it, so that the observer does so first.
_PATIENCE_S: Final = 2.0
_PASSED_ON: Final = (signal.SIGUSR1, signal.SIGUSR2, signal.SIGHUP)


class Supervisor:
    """Runs one task to its end; `run` returns the agent's exit code."""

    def __init__(self, config: AgentConfig, store: RunStore, output: Output) -> None:
        self._config = config
        self._run = config.run
        self._task = config.run.task(config.task)
        self._store = store
        self._output = output
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._execution = Execution(output, lambda ended: self._calls.put(lambda: self._exited(ended())))
        self._heartbeat = Heartbeat(config.beat_s, self._progress, lambda beat: store.put_beat(config.task, beat))
        # What the run wants, and what this agent is in it: `_stored` is what the store knows of `_member`.
        self._state: RunState | None = None
        self._generation = -1
        self._member: Member | None = None
        self._stored: Member | None = None
        self._must_advance = False
        # What is here.
        self._port: HeldPort | None = None
        self._preflight: Preflight | None = None
        self._checked_generation = -1
        self._unreachable: tuple[tuple[str, str, str], ...] | None = None
        self._publishing: Publishing | None = None
        self._told: set[str] = set()
        self._may_turn = False  # to legacy Keras
        # Why this agent must go before the run has its verdict.
        self._orphaned_at: float | None = None
        self._told_to_leave: int | None = None
        self._exit_code: int | None = None

    def run(self) -> int:
        """Until the run has its verdict, or this agent has to go."""
        become_subreaper()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda number, _: self._calls.put(lambda: self._leave(number)))
        for number in _PASSED_ON:
            signal.signal(number, lambda number, _: self._calls.put(lambda: self._execution.signal(number)))
        watch_state(
            self._store.store,
            self._run.run_id,
            on_state=lambda state: self._calls.put(lambda: self._see(state)),
            lost_after_s=self._config.store_lost_s,
            on_lost=lambda: self._calls.put(self._lose_store),
            on_wait=self._output.say if self._config.store_lost_s is None else None,
        )
        if self._config.observe:
            watch_members(self._store.store, self._run.run_id, lambda: self._calls.put(self._want_advance))
            if self._config.silent_after_s is not None:
                watch_silence(self._store, self._config.silent_after_s, lambda: self._calls.put(self._want_advance))
        threading.Thread(target=self._look_first, name="preflight", daemon=True).start()
        self._heartbeat.start()
        while self._exit_code is None:
            try:
                self._calls.get(timeout=self._patience_s())()
            except queue.Empty:
                pass
            try:
                self._reconcile()
            except StoreError:
                pass  # asked again after _RETRY_S, see _patience_s
        if self._port:
            self._port.close()
        if self._publishing:
            self._publishing.stop()
        return self._exit_code

    # What comes in: each is a call from the queue, in the main thread.

    def _see(self, state: RunState) -> None:
        self._state = state

    def _want_advance(self) -> None:
        self._must_advance = True

    def _lose_store(self) -> None:
        self._orphaned_at = time.monotonic()
        self._output.say("the run is gone: nobody answers at its key-value store; ending the task")

    def _leave(self, number: int) -> None:
        if self._told_to_leave is not None:
            self._execution.stop(0)
        self._told_to_leave = number

    def _looked(self, result: Preflight) -> None:
        self._preflight = result
        if result.problem:
            self._refuse(result)
        else:
            self._tell_reachable()

    def _checked(self, generation: int, unreachable: tuple[tuple[str, str, str], ...]) -> None:
        if generation == self._generation:
            self._unreachable = unreachable
            self._tell_reachable()

    def _tell_reachable(self) -> None:
        """Once peers are reached and the task could start: so none begins, and ends, before another can."""
        if self._member and self._unreachable is not None and self._preflight and not self._preflight.problem:
            status = JOINED if self._unreachable else REACHABLE
            self._member = replace(self._member, status=status, unreachable=self._unreachable)

    def _published(self, answer: dict[str, Any]) -> None:
        if self._member:
            self._member = replace(self._member, published=answer)
            self._must_advance = True

    def _exited(self, end: Exit | None) -> None:
        if end is not None:
            self._heartbeat.now()
            self._end_with(wanting_legacy_keras(end, self._progress()) if self._may_turn else end)

    # What is done.

    def _patience_s(self) -> float:
        """Seconds until something must be looked at again even if nothing happens."""
        waits = [5.0]
        if (kill_in_s := self._execution.kill_in_s) is not None:
            waits.append(kill_in_s)
        if self._member != self._stored or self._must_advance or self._orphaned_at is not None:
            waits.append(_RETRY_S)
        if self._state and self._state.phase in (JOINING, CHECKING):
            waits.append(_RETRY_S)
        if self._state and self._state.verdict and self._execution.alive:
            waits.append(_RETRY_S)
        if self._state and self._state.phase == CLOSING and self._execution.alive:
            waits.append(max(self._state.since + leave_s(self._run, self._task.role) - time.time(), 0.05))
        return max(min(waits), 0.01)

    def _reconcile(self) -> None:
        self._execution.tick()
        if self._orphaned_at is not None:
            self._go_orphaned(self._orphaned_at)
            return
        self._flush()
        state = self._state
        if self._told_to_leave is not None:
            self._go_told(self._told_to_leave)
        elif state is None:
            return
        elif state.verdict is not None:
            self._go_home(state)
        elif state.generation > self._generation:
            self._change_generation(state)
        elif state.phase == CHECKING:
            self._check(state)
        elif state.phase == RUNNING:
            self._work(state)
        elif state.phase == CLOSING:
            self._close(state)
        self._flush()
        if state is not None:
            self._keep_time(state)

    def _flush(self) -> None:
        """Store what this member is, and move the run on where that is ours to do."""
        if self._member is not None and self._member != self._stored:
            if self._member.exit and self._member.exit.code == 0:
                self._store.mark_done(self._task.name, self._generation, self._execution.attempt)
            self._store.put_member(self._generation, self._member)
            self._stored = self._member
        if self._must_advance:
            self._state = self._store.advance()
            self._must_advance = False

    def _keep_time(self, state: RunState) -> None:
        """Deadlines hold also where the observer is gone."""
        if state.verdict is not None:
            return
        now = time.time()
        late = state.phase in (JOINING, CHECKING) and now > state.since + self._run.start_deadline_s + _PATIENCE_S
        deadline_s = self._run.deadline_s
        if late or (deadline_s is not None and now > self._run.submitted_at + deadline_s + _PATIENCE_S):
            self._must_advance = True

    def _change_generation(self, state: RunState) -> None:
        goes_on = self._execution.alive and self._task.role == EVALUATOR  # it belongs to no gang
        if self._execution.alive and not goes_on:
            self._execution.stop(state.stop_grace_s)
            return
        if self._port and not goes_on:
            self._port.close()
            self._port = None
        seat = take_seat(self._store, self._config, state, self._port)
        if seat is Taken.WAIT:
            self._state = self._store.advance()
            return
        if seat is Taken.DONE:
            self._output.say(f"{self._task.name} has finished already and is not run again")
            self._store.advance()
            self._exit_code = 0
            return
        assert not isinstance(seat, Taken)
        self._port, self._stored, self._member = seat.port, seat.member, seat.member
        self._generation = state.generation
        if goes_on:
            self._execution.attempt = seat.member.attempt
        elif state.phase == JOINING:
            self._port.listen(greeting(self._run.run_id, state.generation, self._task.name))
        if self._preflight and self._preflight.problem:
            self._refuse(self._preflight)

    def _check(self, state: RunState) -> None:
        if self._checked_generation == state.generation or self._member is None:
            return
        self._checked_generation, self._unreachable = state.generation, None

        def look() -> None:
            found = unreachable_peers(self._run, self._task.name, state, self._config.peer_check_s)
            self._calls.put(lambda: self._checked(state.generation, found))

        threading.Thread(target=look, name="check", daemon=True).start()

    def _work(self, state: RunState) -> None:
        wanted = state.attempts.get(self._task.name, 0)
        if self._execution.alive or self._execution.attempt >= wanted:
            return
        if self._preflight is not None and not self._preflight.problem:
            self._start(state, self._preflight, wanted)

    def _start(self, state: RunState, found: Preflight, attempt: int) -> None:
        assert self._member
        begin = beginning(self._config, state, self._member.address, found.found)
        keras = begin.keras
        if keras.problem:
            self._refuse(replace(found, problem=keras.problem, hint=keras.hint))
            return
        self._may_turn = keras.may_turn
        write_whole(begin.environment[names.TF_CONFIG_FILE], begin.tf_config)
        for note in keras.notes if self._task.name == self._run.deciding else ():
            if note not in self._told:
                self._told.add(note)
                self._output.say(note)  # once a run, not once a task
        if attempt:
            self._output.say(f"attempt {attempt} of {self._task.name} starts (generation {state.generation})")
        if self._port:
            self._port.stop_listening()
        started = self._execution.start(
            begin.command,
            environment=begin.environment,
            folder=self._config.work_dir,
            cpus=self._config.cpus,
            mark=env.mark(self._config),
            attempt=attempt,
        )
        if isinstance(started, Exit):
            self._end_with(started)
        else:
            self._member = replace(self._member, status=STARTED, attempt=attempt, pid=started, exit=None)

    def _close(self, state: RunState) -> None:
        if self._execution.alive:
            if time.time() >= state.since + leave_s(self._run, self._task.role):
                self._execution.stop(_LEAVE_GRACE_S)
            return
        publishes = self._task.name == self._run.deciding and self._run.output is not None and self._config.publisher
        if publishes and self._publishing is None:
            self._publishing = Publishing(
                self._config,
                self._progress(),
                lambda answer: self._calls.put(lambda: self._published(answer)),
            )
        self._end_unless_ended()

    def _go_home(self, state: RunState) -> None:
        """The verdict stands."""
        assert state.verdict
        if self._execution.alive:
            if not self._still_serves(state):
                self._execution.stop(state.stop_grace_s)
            return
        self._end_unless_ended()
        self._must_advance = False
        self._flush()
        finished = bool(self._member and self._member.exit and self._member.exit.code == 0)
        self._exit_code = 0 if finished or state.verdict.outcome == SUCCEEDED else 1

    def _still_serves(self, state: RunState) -> bool:
        """Whether the chief of a stopped run may still save what lies on this server: within the grace time it may."""
        if leave_s(self._run, self._task.role) > 0 or time.time() >= state.since + state.stop_grace_s - _LAST_S:
            return False
        chief, _ = self._store.member(state.generation, self._run.deciding)
        return chief is not None and chief.status == STARTED

    def _go_told(self, number: int) -> None:
        """The engine, or somebody, ends this agent: that is no success, whatever the process answers."""
        if self._execution.alive:
            self._execution.stop(self._run.grace_s)
            return
        if self._member:
            ended = self._member.exit
            if ended is None or ended.reason == "stopped":
                message = "its agent was told to stop"
                attempt = self._member.attempt
                self._end_with(Exit(code=128 + number, reason="lost", at=time.time(), attempt=attempt, message=message))
            self._flush()
        self._exit_code = 128 + number

    def _go_orphaned(self, since: float) -> None:
        """The run is gone, and with it everybody who could tell what to do."""
        if self._execution.alive:
            self._execution.stop(_ORPHAN_GRACE_S)
        elif time.monotonic() >= since + _ORPHAN_GRACE_S + _RETRY_S:
            # Siblings on this machine have had their grace time too: what is left has lost its agent.
            sweep(f"{self._run.run_id}/", prefix=True)
            self._exit_code = 1

    def _refuse(self, found: Preflight) -> None:
        if self._member and self._member.exit is None:
            message = f"{found.problem}" + (f" ({found.hint})" if found.hint else "")
            attempt = self._member.attempt
            self._end_with(Exit(code=127, reason="preflight", at=time.time(), attempt=attempt, message=message))

    def _end_unless_ended(self) -> None:
        """There is nothing left to do for this task: say so, for the others wait to hear it."""
        if self._member and self._member.exit is None:
            self._end_with(Exit(code=143, reason="stopped", at=time.time(), attempt=self._member.attempt))

    def _end_with(self, end: Exit) -> None:
        if self._member:
            self._member = replace(self._member, status=EXITED, exit=end, pid=None)
            self._must_advance = True

    def _look_first(self) -> None:
        command = self._task.command or ("python", "-")
        variables, _ = env.environment(self._config, RunState.first(0.0), "", os.environ)
        result = preflight(self._run, self._task, command, variables, self._config.work_dir)
        self._calls.put(lambda: self._looked(result))

    def _progress(self) -> dict[str, Any]:
        return merged(self._output.progress(), read_progress(self._config.state_dir))
