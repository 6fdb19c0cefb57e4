"""``yurt image``: make a container image for a job."""

from __future__ import annotations

from pathlib import Path

import click

from yurt.cli.common import JOB_FILE
from yurt.cli.out import standard_error, standard_output
from yurt.errors import UsageError


@click.group(invoke_without_command=True)
@click.pass_context
def image(ctx: click.Context) -> None:
    """Make a container image for a job."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@image.command(short_help="Build one from the job's requirements.")
@JOB_FILE
@click.option(
    "-t", "--tag", metavar="NAME", help="The image's name; made of the job's name and its content unless said."
)
@click.option(
    "--requirements",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="What pip installs; requirements.txt beside the job file unless said.",
)
@click.option("--base", metavar="IMAGE", help="The image to begin with; python:3.11-slim unless said.")
@click.option("--dry-run", is_flag=True, help="Only print the Dockerfile.")
@click.option("-q", "--quiet", is_flag=True, help="Only print the image's name.")
def build(
    job_file: Path, tag: str | None, requirements: Path | None, base: str | None, dry_run: bool, quiet: bool
) -> None:
    """Build an image that holds what a job needs, with the local Docker daemon.

    The job's own files are not in it: they travel with each run. Yurt is not in it either.
    """
    from yurt.cli.common import load
    from yurt.engines.docker.recipe import BASE, recipe

    loaded = load(job_file, engine="docker")
    wanted = recipe(loaded.job.name, _requirements(requirements, loaded.folder), base or BASE, tag)
    if dry_run:
        standard_output().say(wanted.dockerfile.rstrip())
        return
    from yurt.engines.docker.client import Daemon

    progress = standard_error()
    Daemon().build(wanted.context(), wanted.name, (lambda _: None) if quiet else progress.say)
    standard_output().say(wanted.name)
    if not quiet:
        progress.say(f"yurt: built; write into {job_file.name}:\n      image: {wanted.name}")


def _requirements(named: Path | None, folder: Path) -> str:
    file = named or folder / "requirements.txt"
    try:
        return file.read_text(encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"the requirements cannot be read: {file}: {error.strerror}",
            hint="write one requirement a line, such as tensorflow==2.21.0, or name the file: --requirements FILE",
        ) from error
    except UnicodeDecodeError as error:
        raise UsageError(f"{file} is no text in UTF-8") from error
