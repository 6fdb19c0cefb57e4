"""Keeps a pod for a while whose model could not be published: it is nowhere else."""

from __future__ import annotations

import signal
import threading

from yurt.agent.output import Output
from yurt.agent.remembering import RememberingStore
from yurt.contract.state import PUBLISH_FAILED


def hold(store: RememberingStore, output: Output, seconds: float) -> None:
    """Where this is the deciding task and publishing failed, wait so long, or until somebody ends the pod."""
    state, member, run = store.newest, store.own, store.spec
    failed = state is not None and state.verdict is not None and state.verdict.outcome == PUBLISH_FAILED
    if not failed or member is None or member.task != run.deciding or seconds <= 0:
        return
    if member.exit is None or member.exit.code != 0:
        return
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    output.say(f"the model is kept in this pod for {seconds / 60:.0f} minutes: yurt publish {run.run_id}")
    ended.wait(seconds)
