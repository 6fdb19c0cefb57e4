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
    "--chroot",
    multiple=True,
    metavar="FOLDER[:AS]",
    help="A folder of this machine that tasks of the driver exec see, such as a Python environment; also repeatedly.",
)
def dev(nodes: int, cpu_mhz: int, memory_mb: int, chroot: tuple[str, ...]) -> int:
    """Start a real Nomad and a real Consul on this machine's loopback, for trying things out, until Ctrl-C.

    Both are taken from PATH. The nodes are processes of this machine that pretend to be machines of their own. Nothing
    is left when it ends. Docker is the daemon that DOCKER_HOST names, else the usual one.
    """
    from yurt.cluster.dev import DevCluster

    seen = _seen(chroot)
    out = standard_output()
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: over.set())
    with DevCluster(clients=nodes, cpu_mhz=cpu_mhz, memory_mb=memory_mb, chroot=seen, default_ports=True) as raised:
        ready = f"Nomad at {raised.nomad} with {nodes} node{'s' * (nodes != 1)}, Consul at {raised.consul}"
        out.say(f"yurt: {ready}; Ctrl-C ends them")
        for name, value in raised.environment.items():
            out.say(f"export {name}={value}")
        over.wait()
    return 0


def _seen(chroot: Sequence[str]) -> dict[str, str]:
    """Each folder, and where tasks see it. Raises click.BadParameter."""
    found = {}
    for text in chroot:
        folder, _, place = text.partition(":")
        source = Path(folder).absolute()
        if not source.is_dir():
            raise click.BadParameter(f"{source} is not a folder", param_hint="--chroot")
        if not (place or "/").startswith("/"):
            raise click.BadParameter(f"{place} must be an absolute path", param_hint="--chroot")
        found[str(source)] = place or str(source)
    return found
