"""``yurt publish``: put the model of a run where it belongs, after all."""

from __future__ import annotations

from dataclasses import asdict

import click

from yurt.cli import words
from yurt.cli.as_json import as_line
from yurt.cli.common import JSON, ONE_RUN
from yurt.cli.on_engine import ON, find
from yurt.cli.out import standard_error, standard_output


@click.command()
@ONE_RUN
@ON
@click.option(
    "--to", metavar="FOLDER_OR_URL", help="Where, in place of the job's output: a folder, s3://, gs:// or az://."
)
@JSON
def publish(run_id: str, engine: str | None, to: str | None, as_json: bool) -> None:
    """Publish the model of a run that has trained: after a failed publish, again, or elsewhere.

    RUN is an id, or the beginning of one. What is there already and whole is not sent again. A model that was left on
    a node of a cluster is fetched from there first, while the cluster keeps it.
    The exit code is 0, or 5 if it could not be published; the model is kept then.
    """
    from pathlib import Path

    from yurt.launcher.republish import republish

    folder = find(run_id, engine, otherwise=standard_error().say)
    place = str(Path(to).absolute()) if to and "://" not in to else to
    done = republish(folder, place, standard_error().say)
    if as_json:
        standard_output().say(as_line({"run": folder.run_id, "published": {"ok": True, **asdict(done)}}))
    else:
        standard_output().say(
            f"yurt: {folder.run_id}: model: {words.place(done.place)} (latest points to it), "
            f"{words.counted(done.files, 'file')}, {words.size(done.bytes)}"
        )
