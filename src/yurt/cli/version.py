"""``yurt version``."""

from __future__ import annotations

import platform

import click

import yurt


def print_version() -> None:
    """``yurt 0.1.0 (Python 3.11.2)``."""
    click.echo(f"yurt {yurt.__version__} (Python {platform.python_version()})")


@click.command()
def version() -> None:
    """Print the version."""
    print_version()
