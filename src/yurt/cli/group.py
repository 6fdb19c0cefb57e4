"""The command with its verbs: knows their names and first sentences, imports a verb when it is called."""

from __future__ import annotations

import difflib
import importlib
from typing import Final

import click
from click.shell_completion import CompletionItem

#: The verbs in the order in which help shows them. Each is the function of its name in the module ``yurt.cli.<name>``
#: (or ``<name>_`` where the name is Python's).
VERBS: Final = {
    "run": "Train a job and show it; -d leaves it in the background.",
    "check": "Look whether a job could start, without starting it.",
    "render": "Print what the engine would be sent, as JSON.",
    "ls": "List the runs, the newest first.",
    "status": "Show one run and its tasks.",
    "logs": "Show what the tasks of a run print.",
    "wait": "Wait for the end of a run.",
    "stop": "Stop a run.",
    "publish": "Publish the model of a run again, or elsewhere.",
    "prune": "Remove what is kept of ended runs.",
    "image": "Make a container image for a job.",
    "data": "Look at training data, or check it before a run.",
    "convert": "Make a Yurt job file of a Nomad job, or the other way round.",
    "cluster": "Raise a cluster of Nomad and Consul.",
    "kubernetes": "Make a Kubernetes cluster ready for runs.",
    "doctor": "Look whether runs can work on an engine, and what mends it.",
    "schema": "Print the JSON Schema of job files.",
    "completion": "Print the completion script for your shell.",
    "version": "Print the version.",
}


class LazyGroup(click.Group):
    """Answers --help and completes verbs without importing any of them."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """The verbs, in their order."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The verb, imported now."""
        if cmd_name not in VERBS:
            return None
        verb: click.Command = getattr(importlib.import_module(f"yurt.cli.{cmd_name}"), cmd_name)
        return verb

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with a guess for a verb that there is not."""
        name = args[0]
        if name not in VERBS and not name.startswith("-"):
            near = difflib.get_close_matches(name, VERBS, n=1)
            guess = f"; did you mean {near[0]}?" if near else ""
            ctx.fail(f"there is no verb {name!r}{guess}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """The verbs with their first sentences."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Verbs first, then the options of `yurt` itself."""
        found = [CompletionItem(name, help=text) for name, text in VERBS.items() if name.startswith(incomplete)]
        return found or click.Command.shell_complete(self, ctx, incomplete)
