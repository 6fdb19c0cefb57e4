"""The agent: ``python agent.pyz CONFIG.json``, or ``-`` for a configuration on standard input.

Exit code 0 if its task finished or the run succeeded, 1 if not, 128 + n when signal n told it to go.
"""

from __future__ import annotations

import sys

from yurt.agent.output import Output
from yurt.agent.supervisor import Supervisor
from yurt.contract.config import AgentConfig
from yurt.kv.client import Store
from yurt.kv.run_store import RunStore


def main(arguments: list[str]) -> int:
    """Run the task that the configuration names."""
    if arguments[0] == "-":
        text = sys.stdin.read()
    else:
        with open(arguments[0], encoding="utf-8") as file:
            text = file.read()
    config = AgentConfig.loads(text)
    output = Output(log_times=config.log_times)
    store = RunStore(Store(config.store, config.token), config.run)
    return Supervisor(config, store, output).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
