"""``yurt schema``: the JSON Schema of job files."""

from __future__ import annotations

import click

from yurt.cli.as_json import as_page
from yurt.cli.out import standard_output


@click.command()
def schema() -> None:
    """Print the JSON Schema of job files, for editors."""
    from yurt.engines.registry import all_options
    from yurt.job import job_schema

    standard_output().say(as_page(job_schema(all_options())))
