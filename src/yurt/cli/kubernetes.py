"""``yurt kubernetes``: make a cluster ready for runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from yurt.cli.as_json import as_page
from yurt.cli.doctor import IMAGE, PROVE, PULL_SECRET, WITHIN, Proving, look, open_reading, show
from yurt.cli.on_kubernetes import CONTEXT, NAMESPACE, POOL
from yurt.cli.out import standard_error, standard_output
from yurt.errors import EngineError, UsageError

if TYPE_CHECKING:
    from yurt.engines.kubernetes.prepare.reading import Reading
    from yurt.engines.kubernetes.prepare.steps import Step


@click.group(invoke_without_command=True)
@click.pass_context
def kubernetes(ctx: click.Context) -> None:
    """Make a Kubernetes cluster ready for runs."""
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


@kubernetes.command(short_help="Make what runs need on a cluster, where it is missing.")
@CONTEXT
@NAMESPACE
@click.option(
    "--operator",
    metavar="none|RELEASE|FOLDER|URL",
    help="The Kubeflow training operator to install: 1.9.3 unless said and unless one is there.",
)
@click.option("--operator-image", metavar="IMAGE", help="Its image, where nodes cannot pull from where it says.")
@click.option("--user", "users", multiple=True, metavar="NAME", help="Who may run jobs; also repeatedly.")
@click.option("--group", "groups", multiple=True, metavar="NAME", help="A group that may; also repeatedly.")
@click.option(
    "--service-account", "accounts", multiple=True, metavar="[NAMESPACE:]NAME", help="An account that may; the same."
)
@POOL
@click.option("--nodes", metavar="NODE,NODE", help="The nodes that get the label.")
@click.option("--default-storage-class", "default_class", metavar="NAME", help="The StorageClass to be the default.")
@click.option(
    "--apply",
    "manifests",
    multiple=True,
    metavar="FOLDER|URL",
    help="More manifests, such as of a storage provisioner or a GPU device plugin; also repeatedly.",
)
@click.option(
    "--pod-security",
    type=click.Choice(["privileged", "baseline", "restricted"]),
    help="The level that the namespace holds its pods to.",
)
@click.option("--dry-run", is_flag=True, help="Only print the objects, as kubectl apply -f - takes them.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
@PROVE
@IMAGE
@PULL_SECRET
@WITHIN
def prepare(
    context: str | None,
    namespace: str | None,
    operator: str | None,
    operator_image: str | None,
    users: tuple[str, ...],
    groups: tuple[str, ...],
    accounts: tuple[str, ...],
    pool: str | None,
    nodes: str | None,
    default_class: str | None,
    manifests: tuple[str, ...],
    pod_security: str | None,
    dry_run: bool,
    yes: bool,
    prove: bool,
    image: str | None,
    pull_secrets: tuple[str, ...],
    within_s: int,
) -> int:
    """Make what runs need on a cluster, each step only where it is missing; then look as `yurt doctor` does.

    A namespace with an account and least roles; the Kubeflow training operator, by its own manifests; labels of nodes.
    What will be made is said first, and asked about unless --yes is there. It can be called again at any time.
    """
    from yurt.engines.kubernetes.prepare import steps

    if nodes and not pool:
        raise UsageError(
            "--nodes says which nodes get a label, but not which label", hint="add --node-pool-label KEY=VALUE"
        )
    say = standard_error().say if dry_run else standard_output().say
    reading = open_reading(context, namespace, pool)
    wanted = steps.Wanted(
        operator=operator,
        operator_image=operator_image,
        manifests=manifests,
        default_class=default_class,
        nodes=tuple(filter(None, (nodes or "").split(","))),
        users=users,
        groups=groups,
        service_accounts=accounts,
        pod_security=pod_security,
    )
    say(f"{reading.client.session.where}, namespace {reading.namespace}")
    plan = steps.plan(reading, wanted, say)
    if dry_run:
        standard_output().say(as_page(_as_list(plan)))
        return 0
    todo = [each for each in plan if each.missing]
    for each in plan:
        say(f"{'will make' if each.missing else 'there is'}  {each.what}")
    if todo:
        _refuse(reading, todo)
        _ask(yes)
        for each in todo:
            _make(reading, each, within_s)
    proving = Proving(image, pull_secrets, within_s) if prove else None
    found = look(open_reading(context, namespace, pool), proving)
    return show(found, engine="kubernetes", where=None, strict=False, as_json=False)


def _as_list(plan: list[Step]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": [value for step in plan for value in step.objects]}


def _refuse(reading: Reading, todo: list[Step]) -> None:
    """Raises EngineError where this account may not make all of it: then nothing is made."""
    from yurt.engines.kubernetes.prepare import steps

    if missing := steps.refused(reading, todo):
        hint = "ask who administers the cluster to run this, or give them what --dry-run prints"
        if any(each.operator for each in todo):
            hint += "; --operator none leaves the operator out"
        raise EngineError(f"nothing was made: this account may not {'; '.join(missing)}", hint=hint)


def _ask(yes: bool) -> None:
    """Raises UsageError where nobody is there who could answer."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise UsageError("nothing was made: nobody is here to be asked", hint="add --yes, or look first with --dry-run")
    click.confirm("make it?", abort=True)


def _make(reading: Reading, step: Step, within_s: int) -> None:
    from yurt.engines.kubernetes.prepare import steps

    say = standard_output().say
    count = steps.make(reading.client, step)
    say(f"made       {step.what}" if not step.foreign else f"made       {count} objects")
    if step.operator:
        _wait_for_operator(reading, within_s)


def _wait_for_operator(reading: Reading, within_s: int) -> None:
    """What is wrong with it is then found by the checks."""
    from yurt.engines.kubernetes.client import Client
    from yurt.engines.kubernetes.prepare import operator_install, webhook

    client = Client(reading.client.session, patience_s=2.0)
    asked = operator_install.wait_until_it_serves(client, within_s, standard_output().say)
    if asked.reach is webhook.Reach.ANSWERS:
        standard_output().say("ready      the operator, and its webhook answers")
    else:
        standard_output().say(f"the operator does not serve after {within_s} s: {asked.words or asked.reach.value}")
