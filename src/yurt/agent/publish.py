"""Runs the publisher beside the agent: a process of its own, with the object store's client in it."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from typing import Any

from yurt.agent.environment import mark
from yurt.agent.process import tied_to_parent
from yurt.contract import names
from yurt.contract.config import AgentConfig


class Publishing:
    """One publish of the model folder; start it from the main thread.

    `on_answer` is called in another thread with the publisher's answer: ``{"ok": true, "url": ...}`` or why not.
    It never raises: a model that could not be published is kept and has its own verdict.
    """

    def __init__(
        self, config: AgentConfig, metrics: Mapping[str, Any], on_answer: Callable[[dict[str, Any]], None]
    ) -> None:
        run = config.run
        meta_file = os.path.join(config.state_dir, "publish-meta.json")
        meta = {"job": run.job_name, "run": run.run_id, "task": config.task, "progress": dict(metrics)}
        command = [*config.publisher, "--source", config.model_dir, "--output", str(run.output)]
        self._popen: subprocess.Popen[bytes] | None = None
        try:
            with open(meta_file, "w", encoding="utf-8") as file:
                json.dump(meta, file)
            self._popen = subprocess.Popen(
                [*command, "--version", run.run_id, "--meta-file", meta_file],
                env={**os.environ, **config.environment, **run.task(config.task).env, names.PROCESS: mark(config)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,
                preexec_fn=tied_to_parent(),  # noqa: PLW1509 - it only makes system calls
            )
        except OSError as error:
            answer = {"ok": False, "reason": "other", "message": f"the publisher does not run: {error}"}
            threading.Thread(target=on_answer, args=(answer,), daemon=True).start()
            return
        threading.Thread(target=self._wait, args=(on_answer,), name="publish", daemon=True).start()

    def _wait(self, on_answer: Callable[[dict[str, Any]], None]) -> None:
        assert self._popen
        out, err = self._popen.communicate()
        try:
            answer: dict[str, Any] = json.loads(out.splitlines()[-1])
        except (ValueError, IndexError):
            last = err.decode(errors="replace").strip().rpartition("\n")[2] or f"exit code {self._popen.returncode}"
            answer = {"ok": False, "reason": "other", "message": f"the publisher gave no answer: {last}"}
        on_answer(answer)

    def stop(self) -> None:
        """End it; nothing half-published is visible."""
        if self._popen:
            self._popen.kill()
