"""``yurt doctor``: whether runs can work on an engine, and what mends it where they cannot."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from yurt.cli import findings as told
from yurt.cli.as_json import as_page
from yurt.cli.common import ENGINE, JSON
from yurt.cli.marks import colour_wanted
from yurt.cli.on_kubernetes import CONTEXT, NAMESPACE, POOL, pool_of
from yurt.cli.out import standard_output
from yurt.errors import UsageError

if TYPE_CHECKING:
    from yurt.engines.finding import Finding
    from yurt.engines.kubernetes.prepare.reading import Reading

KUBERNETES: Final = "kubernetes"
#: What `yurt doctor` ends with where something hinders a run.
HINDERED: Final = 1
PROVE: Final = click.option(
    "--prove", is_flag=True, help="Run two small pods that find each other, and remove them again."
)
IMAGE: Final = click.option(
    "--image", metavar="IMAGE", help="The image of the proof's pods, with Python; python:3.11-slim unless said."
)
PULL_SECRET: Final = click.option(
    "--pull-secret", "pull_secrets", multiple=True, metavar="NAME", help="The secret for that image's registry."
)
WITHIN: Final = click.option(
    "--within",
    "within_s",
    type=click.IntRange(5, 3600),
    default=120,
    show_default=True,
    metavar="SECONDS",
    help="How long the proof may take.",
)


class Proving(NamedTuple):
    """How to prove the ground. Without an image that of `proof.IMAGE`."""

    image: str | None
    pull_secrets: tuple[str, ...]
    within_s: int


@click.command()
@ENGINE
@CONTEXT
@NAMESPACE
@POOL
@PROVE
@IMAGE
@PULL_SECRET
@WITHIN
@click.option("--strict", is_flag=True, help="End with 1 for warnings as well.")
@JSON
def doctor(
    engine: str,
    context: str | None,
    namespace: str | None,
    pool: str | None,
    prove: bool,
    image: str | None,
    pull_secrets: tuple[str, ...],
    within_s: int,
    strict: bool,
    as_json: bool,
) -> int:
    """Look whether runs can work on an engine; each finding says why it matters and what mends it.

    The exit code is 0, or 1 if something hinders a run. Nothing is changed; --prove makes two pods for a moment.
    """
    if engine != KUBERNETES:
        if context or namespace or pool or prove or image:
            raise UsageError(
                "--context, --namespace, --node-pool-label, --prove and --image are for Kubernetes",
                hint="add --on kubernetes",
            )
        from yurt.launcher.examining import examine

        return show(examine(engine), engine=engine, where=None, strict=strict, as_json=as_json)
    reading = open_reading(context, namespace, pool)
    where = f"{reading.client.session.where}, namespace {reading.namespace}"
    proving = Proving(image, pull_secrets, within_s) if prove else None
    return show(look(reading, proving), engine=engine, where=where, strict=strict, as_json=as_json)


def open_reading(context: str | None, namespace: str | None, pool: str | None) -> Reading:
    """The cluster, which is asked for its version so that a wrong address is told at once. Raises EngineError."""
    from yurt.engines.kubernetes.client import Client
    from yurt.engines.kubernetes.prepare.reading import Reading
    from yurt.engines.kubernetes.session import open_session

    client = Client(open_session(context, namespace), patience_s=5.0)
    reading = Reading(client, pool=pool_of(pool))
    _ = reading.version
    return reading


def look(reading: Reading, proving: Proving | None) -> Iterator[Finding]:
    """All checks, and the proof if it is wanted."""
    from yurt.engines.kubernetes.prepare import doctor as checks
    from yurt.engines.kubernetes.prepare import proof

    yield from checks.examine(reading)
    if proving:
        image = proving.image or proof.IMAGE
        wanted = proof.proof_for(reading, image, proving.within_s, proving.pull_secrets)
        yield from checks.seen(proof.CHECK, proof.prove(reading, wanted))


def show(found: Iterable[Finding], *, engine: str, where: str | None, strict: bool, as_json: bool) -> int:
    """Print findings as they come, or all as JSON; the exit code."""
    from yurt.engines.finding import Level, worst

    out = standard_output()
    colour = colour_wanted(out, no_color=False)
    if where and not as_json:
        out.say(f"{engine}: {where}")
    seen = []
    for each in found:
        seen.append(each)
        if not as_json:
            out.say("\n".join(told.lines(each, colour=colour)))
    bad = worst(seen) in ((Level.PROBLEM, Level.WARNING) if strict else (Level.PROBLEM,))
    if as_json:
        value = {"ok": not bad, "engine": engine, "where": where, "findings": [told.as_value(each) for each in seen]}
        out.say(as_page(value))
    else:
        out.say(told.summary(seen))
    return HINDERED if bad else 0
