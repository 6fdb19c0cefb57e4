"""Variables whose values are in the cluster, where a run does not go into one: from the file, or refused."""

from __future__ import annotations

from collections.abc import Iterator

from yurt.convert.tfjob.ground import Ground
from yurt.convert.tfjob.parts import RoleRead, Variable
from yurt.convert.tfjob.tree import Node


def known_variables(role: RoleRead, ground: Ground) -> Iterator[tuple[str, str, Node]]:
    """Name, text as it is written, and part of each variable of a role.

    Raises UsageError for one that nothing here knows.
    """
    for source in role.variables_from:
        yield from _all_of(source, ground)
    for variable in role.variables:
        if variable.source is None:
            yield variable.name, variable.text or "", variable.node
        elif variable.name not in ground.given and (text := _text_of(variable, ground)) is not None:
            yield variable.name, text.replace("$", "$$"), variable.node


def _all_of(source: Node, ground: Ground) -> Iterator[tuple[str, str, Node]]:
    prefix = source.string("prefix") or ""
    for key, what, found in (
        ("configMapRef", "config map", ground.manifest.config_maps),
        ("secretRef", "secret", ground.manifest.secrets),
    ):
        reference = source.mapping(key)
        if reference is None:
            continue
        name = reference.string("name") or ""
        optional = reference.get("optional")
        if name in found:
            for variable, text in found[name].items():
                yield prefix + variable, text.replace("$", "$$"), source
        elif optional is None or optional.value is not True:
            reference.refuse(
                f"takes all variables of the {what} {name}, which is in a cluster",
                f"put the {what} into the file, or write the variables under env",
            )


def _text_of(variable: Variable, ground: Ground) -> str | None:
    """The value of a variable that the cluster has. Raises UsageError where it is nowhere here."""
    assert variable.source is not None
    own = f"give it with `--env {variable.name}=VALUE`"
    for key, what, found in (
        ("configMapKeyRef", "config map", ground.manifest.config_maps),
        ("secretKeyRef", "secret", ground.manifest.secrets),
    ):
        reference = variable.source.mapping(key)
        if reference is None:
            continue
        name, entry, optional = reference.string("name") or "", reference.string("key") or "", reference.get("optional")
        if (text := found.get(name, {}).get(entry)) is not None:
            return text
        if optional is not None and optional.value is True:
            return None
        variable.node.refuse(
            f"{variable.name} is {entry} of the {what} {name}, which is in a cluster",
            f"{own}, or put the {what} into the file",
        )
    what = next(iter(variable.source.value), "a field of the pod")
    return variable.node.refuse(f"{variable.name} is known only to a pod ({what})", own)
