"""Lists the cases of a script without running it."""

from __future__ import annotations

import ast

from tests.training.pairs import SCRIPTS


def cases_of(script: str) -> list[str]:
    """The functions that are marked ``@case``, in their order."""
    tree = ast.parse((SCRIPTS / script).read_text())
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(each, ast.Name) and each.id == "case" for each in node.decorator_list)
    ]
