"""HCL2's syntax, by python-hcl2: the only file that knows the parser and the names of its grammar.

python-hcl2 8.1 hands out lark's tree, whose nodes know their lines. Its own reading of values is not used: it gives no
lines, leaves escapes and ``${...}`` in the text, and does not evaluate.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from yurt.convert.source import Source
from yurt.errors import UsageError

if TYPE_CHECKING:
    from lark import Token, Tree

_HEREDOC: Final = re.compile(r"<<-?(?P<mark>[A-Za-z_][\w.-]*)\r?\n(?:.*\r?\n)*?[ \t]*(?P=mark)(?=\r?\n|$)")
#: HCL's escape for a literal ``${`` or ``%{``, and another spelling of it.
_ESCAPED: Final = {"$${": r"\u0024{", "%%{": r"\u0025{"}
_ESCAPE: Final = re.compile(r"\$\$\{|%%\{")

_INSTALL: Final = "pip install 'yurt[hcl]', or give the job as `nomad job run -output FILE` prints it"

_SKIPPED: Final = frozenset({"new_line_or_comment"})
#: Rules that only group what they hold.
_WRAPPERS: Final = frozenset({"expr_term", "object_elem_key", "string_part"})


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the tree: a rule with children, or a token with its text and no children."""

    rule: str
    text: str
    line: int
    children: tuple[Node, ...] = ()

    @property
    def is_token(self) -> bool:
        """Whether this is a word or a sign, which the grammar writes in capitals."""
        return self.rule.isupper()

    def first(self, rule: str) -> Node | None:
        """The first child of this rule."""
        return next((child for child in self.children if child.rule == rule), None)


def parse(source: Source, *, first_line: int = 1) -> Node:
    """The syntax tree of a text that begins in line `first_line`. Raises `UsageError` with the line of a mistake."""
    try:
        from hcl2 import parses_to_tree
        from lark.exceptions import LarkError, UnexpectedInput, UnexpectedToken
    except ImportError:
        raise UsageError(f"{source.file} is HCL, and python-hcl2 is not installed", hint=_INSTALL) from None

    text = _plain_escapes(source.text)
    try:
        tree = parses_to_tree(text)
    except UnexpectedInput as error:
        line = _line_of(error, text) + first_line - 1
        found = error.token if isinstance(error, UnexpectedToken) else text[error.pos_in_stream or 0 :][:1]
        raise UsageError(f"{source.file}:{line} is not HCL: {_unexpected(str(found))}") from None
    except LarkError as error:
        raise UsageError(f"{source.file} is not HCL: {str(error).splitlines()[0]}") from None
    return _node(tree, text, first_line - 1)


def _plain_escapes(text: str) -> str:
    """The text with the escapes of ``${`` and ``%{`` spelt by the sign's number, which means the same.

    python-hcl2 8.1 reads from ``$${`` to the next ``}``, also where that stands behind the end of the quotes. A heredoc
    knows no such spelling and stays.
    """
    pieces = []
    end = 0
    for match in [*_HEREDOC.finditer(text), None]:
        start = match.start() if match else len(text)
        pieces.append(_ESCAPE.sub(lambda found: _ESCAPED[found[0]], text[end:start]))
        if match:
            pieces.append(match[0])
            end = match.end()
    return "".join(pieces)


def _line_of(error: Any, text: str) -> int:
    line = getattr(error, "line", -1)
    return line if isinstance(line, int) and line > 0 else text.count("\n") + 1


def _unexpected(found: str) -> str:
    if found.lstrip(" \t\r").startswith("\n"):
        return "the line ends too early"
    if not found.strip():
        return "the file ends too early"
    if found.startswith("<<"):
        return f"the text that begins with {found.split(maxsplit=1)[0]} has no end"
    return f"{found.splitlines()[0][:40]!r} is not expected here"


def _node(tree: Tree[Token] | Token, text: str, before: int) -> Node:
    """Our node of lark's; rules that only group are left out."""
    from lark import Token

    if isinstance(tree, Token):
        return Node(tree.type, str(tree), (tree.line or 1) + before)
    children = tuple(
        _node(child, text, before)
        for child in tree.children
        if child is not None and (isinstance(child, Token) or child.data not in _SKIPPED)
    )
    rule = str(tree.data)
    if rule in _WRAPPERS and len(children) == 1:
        return children[0]
    meta = tree.meta
    if meta.empty:
        return Node(rule, "", before + 1, children)
    return Node(rule, text[meta.start_pos : meta.end_pos], meta.line + before, children)
