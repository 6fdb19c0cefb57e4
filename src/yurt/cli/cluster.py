"""``yurt cluster``: machines to run jobs on."""

from __future__ import annotations

import signal
import threading

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
def dev(nodes: int, cpu_mhz: int, memory_mb: int) -> int:
    """Start a real Nomad and a real Consul on this machine's loopback, for trying things out, until Ctrl-C.

    Both are taken from PATH. The nodes are processes of this machine that pretend to be machines of their own. Nothing
    is left when it ends.
    """
    from yurt.cluster.dev import DevCluster

    out = standard_output()
    over = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: over.set())
    with DevCluster(clients=nodes, cpu_mhz=cpu_mhz, memory_mb=memory_mb, default_ports=True) as raised:
        ready = f"Nomad at {raised.nomad} with {nodes} node{'s' * (nodes != 1)}, Consul at {raised.consul}"
        out.say(f"yurt: {ready}; Ctrl-C ends them")
        for name, value in raised.environment.items():
            out.say(f"export {name}={value}")
        over.wait()
    return 0
