"""``yurt convert``: job files of other systems, in and out."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from yurt.cli.out import standard_error, standard_output
from yurt.errors import UsageError

if TYPE_CHECKING:
    from yurt.convert import Note


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True))
@click.option("--to", type=click.Choice(["nomad"]), help="Write a Yurt job file as this, instead of reading one.")
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write here, not on the screen.")
@click.option("--format", "syntax", type=click.Choice(["hcl", "json"]), help="How --to nomad writes; hcl unless said.")
@click.option("--name", metavar="NAME", help="The name of the Yurt job.")
@click.option("--var", "variables", metavar="NAME=VALUE", multiple=True, help="A variable of the Nomad job file.")
@click.option("--mhz", metavar="N", type=click.IntRange(1, 100_000), help="MHz of Nomad's that are one CPU; 2500.")
def convert(
    files: tuple[Path, ...],
    to: str | None,
    output: Path | None,
    syntax: str | None,
    name: str | None,
    variables: tuple[str, ...],
    mhz: int | None,
) -> None:
    """Make a Yurt job file of a Nomad job, or the other way round.

    Several files make one job: chief.nomad worker.nomad. A Nomad job is read as HCL2, or as the JSON that
    `nomad job run -output` and `nomad job inspect` print; - is standard input. What cannot be carried over is told,
    and stands in the written file.
    """
    if output is not None and output.exists():
        raise UsageError(f"{output} is there already", hint="remove it, or give -o another name")
    mhz_per_cpu = {} if mhz is None else {"mhz_per_cpu": mhz}
    if to is None:
        if syntax:
            raise UsageError("--format is for --to nomad; a Yurt job file is YAML")
        text, notes = _to_yurt(files, name, variables, mhz_per_cpu)
    else:
        if name or variables:
            raise UsageError(f"{'--name' if name else '--var'} is for reading a Nomad job file, not for --to {to}")
        text, notes = _from_yurt(files, to, {"syntax": syntax or "hcl", **mhz_per_cpu})
    _write(text, output)
    for note in notes:
        standard_error().say(f"yurt: {note}")


def _to_yurt(
    files: tuple[Path, ...], name: str | None, variables: tuple[str, ...], mhz_per_cpu: dict[str, int]
) -> tuple[str, Iterable[Note]]:
    from yurt.convert import job_file, read_jobs, read_source
    from yurt.engines import registry

    given: dict[str, str] = {}
    for text in variables:
        variable, equals, given[variable] = text.partition("=")
        if not equals or not variable:
            raise UsageError(f"--var {text!r} gives no value", hint="write --var NAME=VALUE")
    sources = [read_source(file) for file in files]
    converted = read_jobs(sources, name=name, variables=given, engine_options=registry.all_options(), **mhz_per_cpu)
    return job_file(converted, ", ".join(source.file for source in sources)), converted.notes


def _from_yurt(files: tuple[Path, ...], to: str, options: dict[str, str | int]) -> tuple[str, Iterable[Note]]:
    from yurt.cli.common import load
    from yurt.convert import is_yurt, read_source, write_job

    if len(files) != 1:
        raise UsageError(f"--to {to} writes one Yurt job file, and there are {len(files)}")
    source = read_source(files[0])
    if not is_yurt(source):
        raise UsageError(f"{source.file} is no Yurt job file, and --to {to} is for those")
    written = write_job(load(files[0]).job, to, **options)
    return written.text, written.notes


def _write(text: str, output: Path | None) -> None:
    if output is None:
        standard_output().write(text)
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{output} cannot be written: {(error.strerror or str(error)).lower()}") from None
