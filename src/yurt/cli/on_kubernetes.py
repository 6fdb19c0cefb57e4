"""The options by which verbs name a Kubernetes cluster and a place in it."""

from __future__ import annotations

import re
from typing import Final

import click

from yurt.errors import UsageError

CONTEXT: Final = click.option(
    "--context", metavar="NAME", help="The kubeconfig's context; the current one unless said."
)


def _namespace(_ctx: click.Context, _param: click.Parameter, name: str | None) -> str | None:
    """As it is, if it can be one. Raises UsageError."""
    if name is not None and not _NAMESPACE.fullmatch(name):
        hint = "small letters, digits and -, at most 63, such as train"
        raise UsageError(f"--namespace {name!r} can be no namespace", hint=hint)
    return name


_NAMESPACE: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
NAMESPACE: Final = click.option(
    "-n",
    "--namespace",
    metavar="NAME",
    callback=_namespace,
    help="The namespace of the runs; the context's unless said.",
)
POOL: Final = click.option(
    "--node-pool-label", "pool", metavar="KEY=VALUE", help="The label of the nodes that are meant for runs."
)
_KEY: Final = re.compile(r"([a-z0-9.-]+/)?[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_VALUE: Final = re.compile(r"([A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


def pool_of(text: str | None) -> tuple[str, str] | None:
    """The label's key and value. Raises UsageError where it is no label."""
    if text is None:
        return None
    key, equals, value = text.partition("=")
    if not equals or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
        raise UsageError(f"--node-pool-label {text!r} is no label", hint="write KEY=VALUE, such as pool=training")
    return key, value
