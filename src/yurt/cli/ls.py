"""``yurt ls``: the runs, the newest first."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click

from yurt.cli import words
from yurt.cli.as_json import as_page
from yurt.cli.common import JSON
from yurt.cli.out import standard_output


@click.command()
@JSON
def ls(as_json: bool) -> None:
    """List the runs, the newest first."""
    from yurt.cli.facts import short_facts
    from yurt.errors import RunNotFound
    from yurt.launcher.records import all_runs

    out = standard_output()
    rows = []
    for folder in all_runs():
        try:
            rows.append(short_facts(folder))
        except RunNotFound:
            continue  # removed meanwhile
    if as_json:
        out.say(as_page(rows))
    elif rows:
        from yurt.cli.table import table

        head = ("RUN", "STATE", "ENGINE", "TASKS", "AGE", "")
        out.say(table([head, *(_row(row) for row in rows)]))
    else:
        out.say("there are no runs yet; `yurt run job.yaml` starts one")


def _row(run: Mapping[str, Any]) -> tuple[str, ...]:
    from yurt.contract.progress import in_words

    age = words.seconds(time.time() - run["submitted_at"])
    told = in_words(run["progress"]) if run["outcome"] in (None, "succeeded") else run["message"]
    return (run["run"], run["outcome"] or run["phase"], run["engine"], str(run["tasks"]), age, told)
