"""Files that are not manifests yet: templates, which a tool of their own has to fill in first."""

from __future__ import annotations

import re
from typing import Final

from yurt.convert.source import Source
from yurt.convert.tfjob.tree import Node
from yurt.errors import UsageError

#: What only Helm's templates hold: its objects, its functions, its actions.
_HELM: Final = re.compile(
    r"\{\{-?\s*(?:\$?\.(?:Values|Release|Chart|Capabilities|Files|Template)\b|(?:include|tpl|toYaml|required)\b|"
    r"[^{}\n]*\.Values\.|[^{}\n]*\|\s*(?:nindent|indent|quote|default|toYaml)\b)"
)
_KATIB: Final = re.compile(r"\$\{trial(?:Parameters|Spec)\.[^}]*\}")
_ARGO: Final = re.compile(r"\{\{-?\s*=?\s*(?:workflow|inputs|steps|tasks|item|pod|outputs|retries)\b")
_JINJA: Final = re.compile(r"\{%-?\s*\w+")
_GO: Final = re.compile(r"\{\{-?\s*(?:\.|if\b|else\b|range\b|with\b|end\b|define\b|template\b|block\b|\$)")
_ANY: Final = re.compile(r"\{\{[^{}\n]*\}\}")
_JSONNET: Final = re.compile(
    r"std\.extVar\(|\bimport(?:str)?\s+[\"'][^\"'\n]+\.(?:lib|j)sonnet[\"']|^\s*local\s+\w+\s*=|^\s*function\s*\(|"
    r"^\s*//\s*@(?:apiVersion|param|name)\b",
    re.MULTILINE,
)
#: A variable of a shell, as envsubst fills it in; ``$(NAME)`` is Kubernetes' own.
_SHELL: Final = re.compile(r"\$\{[A-Za-z_]\w*(?::?[-=+?][^}]*)?\}|^\$[A-Za-z_]\w*$")
#: ``<your-image>``: a place that a person has to fill in.
_BLANK: Final = re.compile(r"<[^<>\s][^<>\n]*>")


def check_text(source: Source) -> None:
    """Raises UsageError for a text that is a template all over, before YAML is tried on it."""
    text = _without_comments(source.text)
    if _JSONNET.search(text):
        _refuse(source, None, "is jsonnet", f"`jsonnet {source.file} > tfjob.json` makes the manifest")
    for form, what, hint in (
        (
            _HELM,
            "is a Helm template",
            "`helm template RELEASE CHART > tfjob.yaml` fills in its values and makes the manifest",
        ),
        (
            _ARGO,
            "is a template of an Argo workflow",
            "put the values in their places: Argo fills them in as it runs a workflow",
        ),
        (_KATIB, "is a template of a Katib experiment", "put a value in each of its places"),
        (_JINJA, "is a Jinja template", "render it with the tool that it belongs to"),
        (_GO, "is a template of Go", "render it with the tool that it belongs to"),
    ):
        if found := form.search(text):
            _refuse(source, found, what, hint)


def check_structure(node: Node, *, free: bool = False) -> None:
    """Raises UsageError for a place to be filled in that decides what the job is.

    `free` texts - commands, variables, annotations - may hold anything: a shell reads them.
    """
    if isinstance(node.value, dict):
        for key, inner in node.value.items():
            check_structure(inner, free=free or key in _FREE)
    elif isinstance(node.value, list):
        for inner in node.value:
            check_structure(inner, free=free)
    elif not free and isinstance(node.value, str):
        _check_word(node)


_FREE: Final = frozenset({"command", "args", "value", "annotations", "data", "stringData", "binaryData", "exec"})


def _check_word(node: Node) -> None:
    if found := _SHELL.search(node.value):
        node.refuse(
            f"holds {found[0]}, which is still to be filled in",
            f"`envsubst < {node.file} > filled.yaml` fills it in from the environment",
        )
    if found := _ANY.search(node.value):
        node.refuse(f"holds {found[0]}, which is still to be filled in", "render it with the tool that it belongs to")
    if found := _BLANK.search(node.value):
        node.refuse(f"holds {found[0]}, which is still to be filled in", "write what belongs there")


def _without_comments(text: str) -> str:
    return "\n".join("" if line.lstrip().startswith("#") else line for line in text.split("\n"))


def _refuse(source: Source, found: re.Match[str] | None, what: str, hint: str) -> None:
    line = "" if found is None else f":{found.string.count(chr(10), 0, found.start()) + 1}"
    held = "" if found is None else f": it holds {found[0].strip()[:40]}"
    raise UsageError(f"{source.file}{line} {what}{held}", hint=hint)
