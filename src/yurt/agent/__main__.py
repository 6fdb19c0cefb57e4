"""The agent: ``python agent.pyz CONFIG.json``, or ``-`` for a configuration on standard input.

Exit code 0 if its task finished or the run succeeded, 1 if not, 126 if it cannot run there at all (its last line says
why), 128 + n when signal n told it to go. With ``--preflight`` it reads the same from standard input, looks, prints
what it found as one line of JSON, and starts nothing.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Final

from yurt.agent.looking import look
from yurt.agent.output import Output
from yurt.agent.reaching import out_of_reach
from yurt.agent.store import run_store
from yurt.agent.supervisor import Supervisor
from yurt.contract.config import AgentConfig
from yurt.errors import UsageError

#: Seconds until an agent that has never reached its launcher's store says so and goes.
_REACH_S: Final = 10.0


def main(arguments: list[str]) -> int:
    """Run the task that the configuration names."""
    if arguments[0] in ("-", "--preflight"):
        text = sys.stdin.read()
    else:
        with open(arguments[0], encoding="utf-8") as file:
            text = file.read()
    config = AgentConfig.loads(text)
    if arguments[0] == "--preflight":
        print(json.dumps(asdict(look(config, config.work_dir))))
        return 0
    if config.store_lost_s is not None and (problem := out_of_reach(config.store, _REACH_S)):
        print(
            f"yurt: the run's store at {config.store} cannot be reached from here ({problem}): a firewall on the "
            f"launcher's machine may keep {config.placed_on} out",
            flush=True,
        )
        return 126
    output = Output(log_times=config.log_times)
    try:
        store = run_store(config)
    except UsageError as error:
        output.say(f"{error} on {config.placed_on}")
        return 126
    return Supervisor(config, store, output).run()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
