"""``yurt cluster``: machines to run jobs on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Sequence
from pathlib import Path

import click

from yurt.cli.out import standard_output


@click.group(invoke_without_command=True)
@click.pass_context
def cluster(ctx: click.Context) -> None:
    """Raise a cluster of Nomad and Consul."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@cluster.command(short_help="A real Nomad and Consul on this machine, until Ctrl-C.")
@click.option("--nodes", default=2, show_default=True, type=click.IntRange(1, 50), help="How many nodes.")
@click.option("--cpu-mhz", default=4000, show_default=True, type=click.IntRange(100), help="What each says it has.")
@click.option("--memory-mb", default=4096, show_default=True, type=click.IntRange(64), help="The same for memory.")
@click.option(
    "--volume",
    "volumes",
    multiple=True,
    metavar="NAME=FOLDER",
    help="A folder of this machine that every node offers to jobs by this name; also repeatedly.",
)
def dev(nodes: int, cpu_mhz: int, memory_mb: int, volumes: tuple[str, ...]) -> int:
    """Start a real Nomad and a real Consul on this machine's loopback, for trying things out, until Ctrl-C.

    Both are taken from PATH. The nodes are processes of this machine that pretend to be machines of their own. Nothing
    is left when it ends. Docker is the daemon that DOCKER_HOST names, else the usual one.
    """
    from yurt.cluster.dev import DevCluster

    offered = _folders(volumes)
    out = standard_output()
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: over.set())
    with DevCluster(clients=nodes, cpu_mhz=cpu_mhz, memory_mb=memory_mb, volumes=offered, default_ports=True) as raised:
        ready = f"Nomad at {raised.nomad} with {nodes} node{'s' * (nodes != 1)}, Consul at {raised.consul}"
        out.say(f"yurt: {ready}; Ctrl-C ends them")
        for name, value in raised.environment.items():
            out.say(f"export {name}={value}")
        over.wait()
    return 0


def _folders(volumes: Sequence[str]) -> dict[str, str]:
    """The folder of each name. Raises click.BadParameter."""
    found = {}
    for text in volumes:
        name, equals, folder = text.partition("=")
        if not name or not equals:
            raise click.BadParameter(f"{text!r} must be NAME=FOLDER", param_hint="--volume")
        if not Path(folder).is_dir():
            raise click.BadParameter(f"{folder!r} is not a folder", param_hint="--volume")
        found[name] = str(Path(folder).absolute())
    return found
