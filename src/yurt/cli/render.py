"""``yurt render``: exactly what the engine would be sent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from yurt.cli.as_json import as_page
from yurt.cli.common import ENGINE, JOB_FILE
from yurt.cli.out import standard_output
from yurt.cli.tfjob_file import Choices, tfjob_options
from yurt.errors import UsageError

if TYPE_CHECKING:
    from yurt.contract.spec import RunSpec


#: Keys whose values are names of things: of labels, of secrets, of a value in one.
_NAMES: Final = ("key", "topologyKey", "secretName")


@click.command()
@JOB_FILE
@ENGINE
@click.option(
    "--format",
    "syntax",
    type=click.Choice(["json", "hcl"]),
    default="json",
    show_default=True,
    help="hcl: the Nomad job as a job file.",
)
@tfjob_options
def render(job_file: Path, engine: str, syntax: str, choices: Choices) -> None:
    """Print what the engine would be sent, as JSON or HCL, and send nothing.

    The run's id, its token and its times are placeholders; the values of secret variables are hidden.
    """
    from yurt.cli.common import load
    from yurt.contract.redact import HIDDEN
    from yurt.engines.base import Place
    from yurt.engines.plan import plan
    from yurt.launcher.files import linked_folders
    from yurt.launcher.home import home, runs
    from yurt.launcher.start import engine_and_options, not_travelling

    loaded = load(job_file, engine=engine, choices=choices)
    adapter, options = engine_and_options(loaded.job, engine)
    spec = plan(loaded.job, f"{loaded.job.name}-RUN", 0.0)
    place = Place(
        folder=runs() / spec.run_id,
        agent=home() / "agents" / "agent.pyz",
        store="http://127.0.0.1:PORT",
        token=HIDDEN,
        linked=linked_folders(loaded.folder, loaded.job.files, not_travelling(loaded.job)),
    )
    request = adapter.render(_without_secrets(spec), place, options, adapter.facts(options))
    page = _hidden(request)
    standard_output().say(as_page(page) if syntax == "json" else _as_job_file(page, engine))


def _as_job_file(request: Mapping[str, Any], engine: str) -> str:
    """The Nomad job in its own language; notes become comments."""
    import json

    from yurt.convert.nomad.hcl_writing import as_hcl

    if engine != "nomad":
        raise UsageError(f"--format hcl: {engine} is sent no Nomad job", hint="add --on nomad")
    notes = [f"# {line}" for note in request["notes"] for line in str(note).splitlines()]
    return "\n".join([*notes, as_hcl(json.loads(json.dumps(request["job"]))).rstrip("\n")])


def _without_secrets(spec: RunSpec) -> RunSpec:
    """The run with its secrets hidden before it is rendered: so they are in no corner of the request."""
    from yurt.contract.redact import redacted

    return replace(spec, tasks=tuple(replace(task, env=redacted(task.env)) for task in spec.tasks))


def _is_secret(key: str) -> bool:
    from yurt.contract.redact import secret

    return key not in _NAMES and secret(key)


def _hidden(value: Any) -> Any:
    """The request with whatever else is named like a secret hidden: an engine's own options may hold one."""
    from yurt.contract.redact import HIDDEN

    if isinstance(value, Mapping):
        return {
            str(key): HIDDEN if isinstance(inner, str) and inner and _is_secret(str(key)) else _hidden(inner)
            for key, inner in value.items()
        }
    if isinstance(value, list | tuple):
        return [_hidden(inner) for inner in value]
    return value
