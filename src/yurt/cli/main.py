"""``yurt``: the entry point. It imports click and nothing else that takes time; `yurt --help` answers at once."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

import click

from yurt.cli.group import LazyGroup
from yurt.errors import YurtError

_CONTEXT: Final = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
#: What a command that Ctrl-C has interrupted ends with, as a shell expects it: 128 + SIGINT. The run goes on.
INTERRUPTED: Final = 130


@click.group(cls=LazyGroup, context_settings=_CONTEXT, invoke_without_command=True)
@click.option("--version", "show_version", is_flag=True, help="Print the version and end.")
@click.pass_context
def yurt(ctx: click.Context, show_version: bool) -> None:
    """Distributed TensorFlow training in a box: one job file, any machine."""
    if show_version:
        from yurt.cli.version import print_version

        print_version()
        ctx.exit(0)
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the exit code (docs/exit-codes.md). Nothing that is raised leaves it."""
    from yurt.cli import failing

    try:
        code = yurt.main(args=None if arguments is None else list(arguments), prog_name="yurt", standalone_mode=False)
    except click.exceptions.Exit as end:
        code = end.exit_code
    except click.ClickException as error:
        code = failing.say_usage(error)
    except YurtError as error:
        code = failing.say(error)
    except (KeyboardInterrupt, click.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        code = 0  # whoever read our output has seen enough
    except Exception as error:
        code = failing.say_internal(error)
    failing.leave_quietly()
    return code if isinstance(code, int) else 0


if __name__ == "__main__":
    sys.exit(main())
