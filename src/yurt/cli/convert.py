"""``yurt convert``: job files of other systems, in and out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from yurt.cli.out import standard_error, standard_output
from yurt.errors import UsageError

if TYPE_CHECKING:
    from yurt.convert import Note


@click.command()
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path, allow_dash=True))
@click.option(
    "--to", type=click.Choice(["nomad", "tfjob"]), help="Write a Yurt job file as this, instead of reading one."
)
@click.option("-o", "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write here, not on the screen.")
@click.option(
    "--format", "syntax", type=click.Choice(["hcl", "yaml", "json"]), help="How --to writes; hcl or yaml unless said."
)
@click.option("--name", metavar="NAME", help="The name of the Yurt job.")
@click.option("--var", "variables", metavar="NAME=VALUE", multiple=True, help="A variable of the Nomad job file.")
@click.option("--job", metavar="NAME", help="Which TFJob of a file, where there are several.")
@click.option("--entrypoint", metavar="COMMAND", help="What a TFJob's image starts, where it names no command.")
@click.option("--mhz", metavar="N", type=click.IntRange(1, 100_000), help="MHz of Nomad's that are one CPU; 2500.")
def convert(
    files: tuple[Path, ...],
    to: str | None,
    output: Path | None,
    syntax: str | None,
    name: str | None,
    variables: tuple[str, ...],
    job: str | None,
    entrypoint: str | None,
    mhz: int | None,
) -> None:
    """Make a Yurt job file of a Nomad job or a Kubeflow TFJob, or the other way round.

    Several Nomad files make one job: chief.nomad worker.nomad. A Nomad job is read as HCL2, or as the JSON that
    `nomad job run -output` and `nomad job inspect` print; a TFJob as YAML or JSON; - is standard input. What cannot be
    carried over is told, and stands in the written file.
    """
    if output is not None and output.exists():
        raise UsageError(f"{output} is there already", hint="remove it, or give -o another name")
    asked = {"--name": name, "--var": variables, "--job": job, "--entrypoint": entrypoint, "--mhz": mhz}
    said = {option: value for option, value in asked.items() if value}
    if to is None:
        if syntax:
            raise UsageError("--format is for --to; a Yurt job file is YAML")
        text, notes = _to_yurt(files, said)
    else:
        _refuse(said, ("--mhz",) if to == "nomad" else (), f"for reading, not for --to {to}")
        known = {"nomad": ("hcl", "json"), "tfjob": ("yaml", "json")}[to]
        if syntax not in (None, *known):
            raise UsageError(f"--format {syntax}: --to {to} writes {' or '.join(known)}")
        options: dict[str, Any] = {"syntax": syntax or known[0]}
        text, notes = _from_yurt(files, to, options if mhz is None else {**options, "mhz_per_cpu": mhz})
    _write(text, output)
    for note in notes:
        standard_error().say(f"yurt: {note}")


def _refuse(said: Mapping[str, Any], known: tuple[str, ...], what: str) -> None:
    for option in said:
        if option not in known:
            raise UsageError(f"{option} is {what}")


def _to_yurt(files: tuple[Path, ...], said: Mapping[str, Any]) -> tuple[str, Iterable[Note]]:
    from yurt.convert import TFJOB, format_of, job_file, read_jobs, read_source
    from yurt.engines import registry

    sources = [read_source(file) for file in files]
    options: dict[str, Any] = {"name": said.get("--name"), "engine_options": registry.all_options()}
    if format_of(sources[0]) == TFJOB:
        from yurt.cli.tfjob_file import images

        _refuse(said, ("--name", "--job", "--entrypoint"), "for a Nomad job file, and this is a TFJob's")
        options |= {"job": said.get("--job"), "images": images(said.get("--entrypoint"))}
    else:
        _refuse(said, ("--name", "--var", "--mhz"), "for a TFJob's file")
        options |= {"variables": _variables(said.get("--var", ()))}
        if "--mhz" in said:
            options["mhz_per_cpu"] = said["--mhz"]
    converted = read_jobs(sources, **options)
    return job_file(converted, ", ".join(source.file for source in sources)), converted.notes


def _variables(texts: Iterable[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for text in texts:
        variable, equals, given[variable] = text.partition("=")
        if not equals or not variable:
            raise UsageError(f"--var {text!r} gives no value", hint="write --var NAME=VALUE")
    return given


def _from_yurt(files: tuple[Path, ...], to: str, options: dict[str, Any]) -> tuple[str, Iterable[Note]]:
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
