"""The agent of a task whose node could not be made ready: it joins its run to say why, and starts nothing."""

from __future__ import annotations

from yurt.agent.output import Output
from yurt.agent.preflight import Preflight
from yurt.agent.store import run_store
from yurt.agent.supervisor import Supervisor
from yurt.contract.config import AgentConfig
from yurt.engines.travel.place.problem import NotReady


class RefusingSupervisor(Supervisor):
    """Its preflight has its answer already: the run ends as one that could not start, and is not tried again."""

    def __init__(self, config: AgentConfig, problem: NotReady) -> None:
        super().__init__(config, run_store(config), Output())
        self._problem = problem

    def _look_first(self) -> None:
        found = Preflight(problem=str(self._problem), hint=self._problem.hint)
        self._calls.put(lambda: self._looked(found))
