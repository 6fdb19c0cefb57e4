"""A task's pod: makes ready what the task needs and becomes its agent; the exit code is what Kubernetes acts on."""
# The agent does without pathlib, and this is the agent's process:
# ruff: noqa: PTH103, PTH109, PTH118, PTH123

from __future__ import annotations

import json
import os
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from yurt.agent.output import Output
from yurt.agent.preflight import Preflight
from yurt.agent.remembering import RememberingStore, keep_filled
from yurt.agent.supervisor import Supervisor
from yurt.contract import exits
from yurt.contract.config import AgentConfig
from yurt.contract.spec import EVALUATOR, PARAMETER_SERVER, WORKER, RunSpec, TaskSpec
from yurt.contract.state import JOINED, LOST, Exit, RunState
from yurt.engines.kubernetes.pod.holding import hold
from yurt.engines.kubernetes.pod.last_words import say
from yurt.engines.kubernetes.pod.leaving import leave_last
from yurt.engines.kubernetes.pod.place import TFJOB, completed, give_a_home
from yurt.engines.kubernetes.pod.start import termination_log
from yurt.engines.travel.place.problem import NotReady
from yurt.engines.travel.place.ready import make_ready
from yurt.kv.client import Store

#: Above this an exit code is a signal's: the agent was told to go, and somebody has to take its place.
_SIGNALLED: Final = 128


class PodSupervisor(Supervisor):
    """The agent of a pod; with a `problem` it joins its run to say why nothing can start here.

    `together` says that no pod of the run is told to go alone (`yurt.engines.kubernetes.pod.stopped`).
    """

    def __init__(
        self, config: AgentConfig, store: RememberingStore, output: Output, problem: NotReady | None, *, together: bool
    ) -> None:
        super().__init__(config, store, output)
        self._remembering = store
        self._problem = problem
        self._together = together

    def _see(self, state: RunState) -> None:
        super()._see(state)
        self._remembering.see(state)  # the exit code is by the newest state, whoever saw it first

    def give_up(self) -> None:
        """The run is gone; may be called from any thread."""
        self._calls.put(self._lose_store)

    def _go_told(self, number: int) -> None:
        if self._execution.alive or not self._together:
            super()._go_told(number)
            return
        self._end_unless_ended()
        self._flush()
        self._exit_code = _SIGNALLED + number

    def _work(self, state: RunState) -> None:
        """A gang that runs has seen all its members ready: one that is not has come after it.

        It joined a store that was empty, before the others gave it back what they remember.
        """
        member = self._member
        if member is None or member.status != JOINED or not _is_of_the_gang(self._run, self._task):
            super()._work(state)
            return
        message = "its pod was lost together with the keeper's"
        attempt = state.attempts.get(self._task.name, 0)
        end = Exit(code=137, reason="lost", at=time.time(), attempt=attempt, message=message)
        self._member = replace(member, status=LOST, exit=end)
        self._must_advance = True

    def _look_first(self) -> None:
        if self._problem is None:
            super()._look_first()
            return
        found = Preflight(problem=str(self._problem), hint=self._problem.hint)
        self._calls.put(lambda: self._looked(found))


def _is_of_the_gang(run: RunSpec, task: TaskSpec) -> bool:
    """Whether it cannot come back alone."""
    return task.role != EVALUATOR and not (run.strategy == PARAMETER_SERVER and task.role == WORKER)


def run(role: str, order: Mapping[str, Any], root: str) -> int:
    """The container's exit code."""
    local = os.path.join(root, "local")
    os.environ.setdefault("YURT_IMAGE_FOLDER", os.getcwd())  # where the image's own commands are at home
    value = completed(order, role, root, os.environ)
    give_a_home(local)
    problem, held = None, None
    with open(os.path.join(local, "lib", "ready.json"), encoding="utf-8") as file:
        wanted = json.load(file)
    try:
        held = make_ready(wanted, value)
    except NotReady as error:
        problem = error
    os.makedirs(value["work_dir"], exist_ok=True)
    config = AgentConfig.from_json(value)
    output = Output()
    store = RememberingStore(Store(config.store, config.token), config)
    supervisor = PodSupervisor(config, store, output, problem, together=order["way"] == TFJOB)

    def give_up(why: str) -> None:
        output.say(why)
        supervisor.give_up()

    keep_filled(store, give_up, never_s=config.run.start_deadline_s)
    code = supervisor.run()
    if order["way"] == TFJOB:
        leave_last(store)
    hold(store, output, order["keep_model_s"])
    del held  # not before: others may clear away what nobody holds
    say(termination_log(root), last_words(config.task, store, code))
    return exit_code(order["way"], store, code)


def exit_code(way: str, store: RememberingStore, code: int) -> int:
    """The agent's exit code as Kubernetes should see it.

    ==============================  ===========  ===============================================
    agent                           Indexed Job  TFJob (restartPolicy ExitCode)
    ==============================  ===========  ===============================================
    run succeeded, task finished    0            0
    run ended otherwise             0            1: final
    told to stop by a signal        128 + n      128 + n: made again
    its run's store is gone         1            1
    ==============================  ===========  ===============================================

    A Job would run again whatever does not end with 0, and the verdict is no secret of exit codes. A store that is
    gone is no end of the run, as far as anybody knows: a Job tries again, as often as its limit allows.
    """
    if way == TFJOB or code >= _SIGNALLED:
        return code
    state = store.newest
    return 0 if state is not None and state.verdict is not None else code


def last_words(task: str, store: RememberingStore, code: int) -> str:
    """The termination message: one sentence."""
    member, state = store.own, store.newest
    verdict = state.verdict if state is not None else None
    if code >= _SIGNALLED:
        return f"{task} was told to stop before its run had ended"
    if member is not None and member.exit is not None and member.exit.reason != "stopped":
        return f"{task} {exits.in_words(member.exit)}"
    if verdict is not None:
        return f"{task} was stopped: the run has ended ({verdict.outcome}: {verdict.message})"
    if code == 0:
        return f"{task} had finished before"
    return f"{task} left: nobody answered at the run's store ({time.strftime('%H:%M:%S', time.gmtime())} UTC)"
