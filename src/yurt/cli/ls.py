"""``yurt ls``: the runs, the newest first."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click

from yurt.cli import words
from yurt.cli.as_json import as_page
from yurt.cli.common import JSON
from yurt.cli.on_engine import ON
from yurt.cli.out import standard_output


@click.command()
@ON
@JSON
def ls(engine: str | None, as_json: bool) -> None:
    """List the runs, the newest first: those of this machine, or with --on all of a cluster."""
    out = standard_output()
    rows = _rows_here() if engine is None else _rows_on(engine)
    if as_json:
        out.say(as_page(rows))
    elif not rows:
        on = f" --on {engine}" if engine else ""
        out.say(f"there are no runs yet; `yurt run job.yaml{on}` starts one")
    else:
        from yurt.cli.table import table

        cluster = engine is not None
        head: tuple[str, ...] = ("RUN", "STATE", "ENGINE", "TASKS", "AGE", "")
        if cluster:
            head = ("RUN", "JOB", "STATE", "ENGINE", "DONE", "AGE", "")
        out.say(table([head, *(_row(row, cluster=cluster) for row in rows)]))


def _rows_here() -> list[dict[str, Any]]:
    from yurt.cli.facts import short_facts
    from yurt.errors import RunNotFound
    from yurt.launcher.records import all_runs

    rows = []
    for folder in all_runs():
        try:
            rows.append(short_facts(folder))
        except RunNotFound:
            continue  # removed meanwhile
    return rows


def _rows_on(engine: str) -> list[dict[str, Any]]:
    from yurt.cli.facts import listed_facts
    from yurt.launcher.elsewhere import runs_on

    return [listed_facts(entry) for entry in runs_on(engine)]


def _row(run: Mapping[str, Any], *, cluster: bool) -> tuple[str, ...]:
    from yurt.contract.progress import in_words

    age = words.seconds(time.time() - run["submitted_at"])
    told = in_words(run["progress"]) if run["outcome"] in (None, "succeeded") else run["message"]
    state = run["outcome"] or run["phase"]
    if cluster:
        return (run["run"], run["job"], state, run["engine"], f"{run['done']}/{run['tasks']}", age, told)
    return (run["run"], state, run["engine"], str(run["tasks"]), age, told)
