"""A TFJob's file where a job file is asked for: read for the engine on which it is to run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from yurt.cli.out import standard_error
from yurt.errors import UsageError

if TYPE_CHECKING:
    from pydantic import BaseModel

    from yurt.convert.tfjob.commands import ImageFacts, Images
    from yurt.job import LoadedJob


@dataclass(frozen=True, slots=True)
class Choices:
    """What the command line says about a TFJob's file, and about the way of a TFJob.

    `volumes` are folders of this machine by the volume that each stands for; `entrypoint` is what its image starts;
    `operator` is the way on Kubernetes, of any job.
    """

    job: str | None = None
    volumes: dict[str, str] = field(default_factory=dict)
    entrypoint: str | None = None
    operator: str | None = None

    def need_tfjob(self, path: Path) -> None:
        """Raises UsageError where something was said, and the file is no TFJob's."""
        said = {"--job": self.job, "--volume": self.volumes, "--entrypoint": self.entrypoint}
        for option, value in said.items():
            if value:
                raise UsageError(f"{option} is for a TFJob's file, and {path} is a job file")


NO_CHOICES: Final = Choices()


def tfjob_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options of verbs that take a TFJob's file too: they come as the one argument `choices`."""

    def gathered(
        *args: Any,
        job: str | None,
        volumes: tuple[str, ...],
        entrypoint: str | None,
        operator: str | None,
        **rest: Any,
    ) -> Any:
        return command(*args, choices=Choices(job, _volumes(volumes), entrypoint, operator), **rest)

    gathered.__name__, gathered.__doc__ = command.__name__, command.__doc__
    gathered.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in (
        click.option(
            "--operator",
            type=click.Choice(["auto", "tfjob", "none"]),
            help="On Kubernetes: as a TFJob of the training operator, or without it; what the job says unless said.",
        ),
        click.option("--entrypoint", metavar="COMMAND", help="What a TFJob's image starts, where it names no command."),
        click.option(
            "--volume",
            "volumes",
            multiple=True,
            metavar="NAME=FOLDER",
            help="A folder of this machine in place of a TFJob's volume. Can be given several times.",
        ),
        click.option("--job", metavar="NAME", help="Which TFJob of a file, where there are several."),
    ):
        gathered = option(gathered)
    return gathered


def _volumes(texts: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, equals, folder = text.partition("=")
        if not equals or not name or not folder:
            raise UsageError(f"--volume {text!r} names no folder", hint="write --volume NAME=FOLDER")
        path = Path(folder).expanduser().absolute()
        if not path.is_dir():
            raise UsageError(f"--volume {name}: {folder} is no folder of this machine")
        found[name] = str(path)
    return found


def tfjob(
    path: Path,
    engine: str,
    choices: Choices,
    given: frozenset[str],
    engine_options: Mapping[str, type[BaseModel]],
) -> LoadedJob | None:
    """The job of a TFJob's file, what was left out told on standard error; None where the file is none."""
    from yurt.convert import is_tfjob, read_jobs, read_source
    from yurt.job import LoadedJob

    try:
        source = read_source(path)
    except UsageError:
        return None  # the reader of job files says it in its own words
    if not is_tfjob(source):
        return None
    converted = read_jobs(
        [source],
        job=choices.job,
        engine=engine,
        volumes=choices.volumes,
        given=given,
        images=images(choices.entrypoint),
        engine_options=engine_options,
    )
    for note in converted.notes:
        standard_error().say(f"yurt: {note}")
    where = path.absolute()
    return LoadedJob(converted.job, where, where.parent)


def images(entrypoint: str | None) -> Images:
    """What is known of images: what the command line says, else what the Docker daemon of this machine has."""
    from pydantic_core import PydanticCustomError

    from yurt.convert.tfjob.commands import ImageFacts
    from yurt.job.command import split
    from yurt.job.findings import said

    if entrypoint is not None:
        try:
            words = tuple(split(entrypoint))
        except PydanticCustomError as error:
            message, hint = said(error)
            raise UsageError(f"--entrypoint {message}", hint=hint) from None
        return lambda image: replace(_of_daemon(image) or ImageFacts(), entrypoint=words, cmd=())
    return _of_daemon


def _of_daemon(image: str) -> ImageFacts | None:
    from yurt.convert.tfjob.commands import ImageFacts
    from yurt.errors import EngineError

    try:
        from yurt.engines.docker.client import Daemon

        config = Daemon().image_config(image)
    except (EngineError, ImportError):
        return None  # no daemon here
    if config is None:
        return None
    return ImageFacts(
        tuple(config.get("Entrypoint") or ()), tuple(config.get("Cmd") or ()), str(config.get("WorkingDir") or "")
    )
