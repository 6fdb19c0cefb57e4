"""``yurt completion``: the script that lets a shell complete verbs, runs, tasks and engines."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import click
from click.shell_completion import get_completion_class

from yurt.cli.out import standard_output
from yurt.errors import UsageError

_SHELLS: Final = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
@click.pass_context
def completion(ctx: click.Context, shell: str | None) -> None:
    """Print the completion script for SHELL (yours, unless it is named).

    \b
    bash  eval "$(yurt completion bash)"     in ~/.bashrc
    zsh   eval "$(yurt completion zsh)"      in ~/.zshrc
    fish  yurt completion fish | source      in ~/.config/fish/config.fish
    """  # noqa: D301 - \b is how click is told to leave lines as they are
    name = shell or Path(os.environ.get("SHELL", "")).name
    kind = get_completion_class(name)
    if kind is None or name not in _SHELLS:
        raise UsageError(f"there is no completion for the shell {name!r}", hint=f"name one of {', '.join(_SHELLS)}")
    standard_output().say(kind(ctx.find_root().command, {}, "yurt", "_YURT_COMPLETE").source().strip())
