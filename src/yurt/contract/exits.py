"""What a task's end means: in words, and whether it may be tried again."""

from __future__ import annotations

import signal
from typing import Final

from yurt.contract.spec import ALWAYS, EXIT_CODE, NEVER, ON_FAILURE
from yurt.contract.state import Exit

#: The script turned out to need Keras 2: it runs again with legacy Keras.
WANTS_LEGACY_KERAS: Final = "wants-legacy-keras"
#: What a shell reports for SIGTERM, and what a process says that heard it and ended.
_TERMINATED: Final = 128 + signal.SIGTERM
#: Ends that no further try can mend: the policy is not asked.
_FINAL_REASONS = ("preflight", "start")
#: Ends that are no fault of the training: they are tried again even where the policy says never.
_INNOCENT_REASONS = ("port-taken", WANTS_LEGACY_KERAS)


def may_restart(policy: str, end: Exit) -> bool:
    """Whether a task that ended so may be run again under this restart policy.

    ======================  =====  ==========  =========  ======
    end                     never  on-failure  exit-code  always
    ======================  =====  ==========  =========  ======
    exit 0                  no     no          no         no
    exit 1 to 127           no     yes         no         yes
    exit 128 to 255         no     yes         yes        yes
    killed by a signal      no     yes         yes        yes
    out of memory           no     yes         yes        yes
    agent or machine lost   no     yes         yes        yes
    port already taken      yes    yes         yes        yes
    wants legacy Keras      yes    yes         yes        yes
    preflight, no command   no     no          no         no
    ======================  =====  ==========  =========  ======

    128 and above are signals as a shell reports them. Every restart counts against the run's one limit.
    """
    if end.code == 0 or end.reason in _FINAL_REASONS:
        return False
    if end.reason in _INNOCENT_REASONS:
        return True
    if policy == NEVER:
        return False
    if policy in (ON_FAILURE, ALWAYS):
        return True
    assert policy == EXIT_CODE, policy
    return end.code >= 128 or end.reason == "out-of-memory"


def exit_code_of(returncode: int) -> tuple[int, int | None]:
    """A return code of Python's subprocess as (exit code, signal): -9 is (137, 9)."""
    return (128 - returncode, -returncode) if returncode < 0 else (returncode, None)


def in_words(end: Exit) -> str:
    """``failed with exit code 1``, ``was killed by SIGKILL (exit code 137)``, ``ran out of memory ...``.

    143 without a signal is a process that was told to end by SIGTERM and did so by itself.
    """
    if end.reason == "lost":
        return "was lost: its agent is gone" + (f" ({end.message})" if end.message else "")
    if end.reason in _FINAL_REASONS:
        return f"could not start: {end.message}"
    if end.reason == "out-of-memory":
        who = "was killed" if end.code == 128 + signal.SIGKILL else "a process of it was killed"
        return f"ran out of memory and {who} (exit code {end.code})"
    if end.reason == "port-taken":
        return "found its port taken by another process (" + (end.message or f"exit code {end.code}") + ")"
    if end.reason == WANTS_LEGACY_KERAS:
        return "needs legacy Keras (" + (end.message or f"exit code {end.code}") + ")"
    if end.code == 0:
        return "finished"
    if end.signal is not None:
        return f"was killed by {_signal_name(end.signal)} (exit code {end.code})"
    if end.code == _TERMINATED:
        return f"was interrupted (exit code {end.code})"
    return f"failed with exit code {end.code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
