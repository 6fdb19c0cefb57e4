"""``yurt render``: exactly what the engine would be sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yurt.cli.as_json import as_page
from yurt.cli.common import ENGINE, JOB_FILE
from yurt.cli.out import standard_output

if TYPE_CHECKING:
    from yurt.contract.spec import RunSpec


@click.command()
@JOB_FILE
@ENGINE
def render(job_file: Path, engine: str) -> None:
    """Print what the engine would be sent, as JSON, and send nothing.

    The run's id, its token and its times are placeholders; the values of secret variables are hidden.
    """
    from yurt.cli.common import load
    from yurt.contract.redact import HIDDEN
    from yurt.engines.base import Place
    from yurt.engines.plan import plan
    from yurt.launcher.files import linked_folders
    from yurt.launcher.home import home, runs
    from yurt.launcher.start import engine_and_options, not_travelling

    loaded = load(job_file)
    adapter, options = engine_and_options(loaded.job, engine)
    spec = plan(loaded.job, f"{loaded.job.name}-RUN", 0.0)
    place = Place(
        folder=runs() / spec.run_id,
        agent=home() / "agents" / "agent.pyz",
        store="http://127.0.0.1:PORT",
        token=HIDDEN,
        linked=linked_folders(loaded.folder, loaded.job.files, not_travelling(loaded.job)),
    )
    request = adapter.render(_without_secrets(spec), place, options, adapter.facts())
    standard_output().say(as_page(_hidden(request)))


def _without_secrets(spec: RunSpec) -> RunSpec:
    """The run with its secrets hidden before it is rendered: so they are in no corner of the request."""
    from yurt.contract.redact import redacted

    return replace(spec, tasks=tuple(replace(task, env=redacted(task.env)) for task in spec.tasks))


def _hidden(value: Any) -> Any:
    """The request with whatever else is named like a secret hidden: an engine's own options may hold one."""
    from yurt.contract.redact import HIDDEN, secret

    if isinstance(value, Mapping):
        return {
            str(key): HIDDEN if isinstance(inner, str) and inner and secret(str(key)) else _hidden(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_hidden(inner) for inner in value]
    return value
