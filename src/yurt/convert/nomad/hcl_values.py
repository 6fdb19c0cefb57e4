"""Values of HCL2 expressions, as Nomad's ``job run`` computes them before it sends a job.

Known are literals, templates, ``var.`` and ``local.``, operators, indexes and the functions of `hcl_functions`. A name
that is neither a variable nor a local, such as ``${NOMAD_ALLOC_INDEX}`` or ``${attr.cpu.arch}``, stays as it is
written: Nomad fills it in later, where the task runs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from yurt.convert.nomad import hcl_functions
from yurt.convert.nomad.hcl_syntax import Node, parse
from yurt.convert.source import Source
from yurt.errors import UsageError

AS_JSON: Final = "`nomad job run -output FILE` computes it and prints the job as the JSON that Yurt reads"
_ESCAPES: Final = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_HEREDOC: Final = re.compile(r"<<(-?)[^\r\n]+\r?\n(.*?)[ \t]*[\w.-]+[\r\n]*\Z", re.DOTALL)
_UNESCAPED: Final = re.compile(r"(?P<escaped>\$\$\{|%%\{)|(?P<begun>\$\{|%\{)")
_SIGNS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "&&": lambda a, b: bool(a and b),
    "||": lambda a, b: bool(a or b),
}


@dataclass(frozen=True, slots=True)
class Unset:
    """A variable that has no default and was not given."""

    name: str


class Values:
    """Evaluates expressions of one file. `variables` and `local_values` may hold `Unset`."""

    def __init__(self, file: str, variables: Mapping[str, Any], local_nodes: Mapping[str, Node]) -> None:
        self._file = file
        self._variables = variables
        self._local_nodes = local_nodes
        self._locals: dict[str, Any] = {}
        self._open: set[str] = set()

    def value(self, node: Node) -> Any:
        """The value of an expression, as JSON has it. Raises `UsageError` for what is not known here."""
        read = getattr(self, f"_{node.rule.lower()}", None)
        if read is None:
            raise self._refuse(node, f"holds {_cut(node.text)}, which Yurt does not compute", AS_JSON)
        try:
            return read(node)
        except (ArithmeticError, TypeError, ValueError, LookupError):
            raise self._refuse(node, f"holds {_cut(node.text)}, which has no value", AS_JSON) from None

    def _refuse(self, node: Node, message: str, hint: str | None = None) -> UsageError:
        return UsageError(f"{self._file}:{node.line} {message}", hint=hint)

    # Literals.

    def _int_lit(self, node: Node) -> int:
        return int(node.text)

    def _float_lit(self, node: Node) -> float | int:
        return _number(float(node.text))

    def _literal_value(self, node: Node) -> bool | None:
        return {"true": True, "false": False, "null": None}[node.text]

    def _tuple(self, node: Node) -> list[Any]:
        return [self.value(child) for child in node.children if not child.is_token]

    def _object(self, node: Node) -> dict[str, Any]:
        pairs = (child for child in node.children if child.rule == "object_elem")
        return {self.name(pair.children[0]): self.value(pair.children[-1]) for pair in pairs}

    def name(self, node: Node) -> str:
        """A key of an object: a bare word stands for itself."""
        return node.text if node.rule in ("identifier", "keyword", "literal_value") else text_of(self.value(node))

    def _expr_term(self, node: Node) -> Any:
        """An expression in parentheses."""
        return self.value(next(child for child in node.children if not child.is_token))

    # Templates.

    def _string(self, node: Node) -> Any:
        parts = [child for child in node.children if child.rule != "DBLQUOTE"]
        if len(parts) == 1 and parts[0].rule == "interpolation":
            return self._interpolation(parts[0])  # "${var.count}" is a number, as var.count is
        return "".join(text_of(self.value(part)) for part in parts)

    def _string_chars(self, node: Node) -> str:
        return _ESCAPE.sub(lambda match: self._character(node, match), node.text)

    def _character(self, node: Node, match: re.Match[str]) -> str:
        if code := match[1] or match[2]:
            return chr(int(code, 16))
        if match[3] not in _ESCAPES:
            raise self._refuse(node, f"has the unknown escape \\{match[3]}")
        return _ESCAPES[match[3]]

    def _interpolation(self, node: Node) -> Any:
        inner = next(child for child in node.children if not child.is_token)
        return self.value(inner) if self._is_ours(inner) else node.text

    def _heredoc_template(self, node: Node) -> str:
        match = _HEREDOC.match(node.text)
        body = match[2] if match else ""
        if match and match[1]:
            lines = body.splitlines(keepends=True)
            margin = min((len(line) - len(line.lstrip(" \t")) for line in lines if line.strip()), default=0)
            body = "".join(line[margin:] if line.strip() else line.lstrip(" \t") for line in lines)
        return self._template(body, node)

    _heredoc_template_trim = _heredoc_template

    def _template(self, text: str, node: Node) -> str:
        """A template that the parser has left as text: a heredoc."""
        done: list[str] = []
        at = 0
        while match := _UNESCAPED.search(text, at):
            done.append(text[at : match.start()])
            if match["escaped"]:
                done.append(match[0][1:])
                at = match.end()
                continue
            line = node.line + 1 + text.count("\n", 0, match.start())
            end = _closing(text, match.end())
            inner = text[match.end() : end]
            if match[0] == "%{" or end < 0 or inner[:1] == "~" or inner[-1:] == "~":
                raise UsageError(
                    f"{self._file}:{line} holds {_cut(text[match.start() :])}, which Yurt does not compute",
                    hint=f"{AS_JSON}; a literal {match[0]} is written {match[0][0]}{match[0]}",
                )
            done.append(self._inserted(inner, text[match.start() : end + 1], line))
            at = end + 1
        return "".join([*done, text[at:]])

    def _inserted(self, inner: str, written: str, line: int) -> str:
        tree = parse(Source(self._file, f"it = {inner}"), first_line=line)
        (body,) = tree.children
        expression = body.children[0].children[-1]
        return text_of(self.value(expression)) if self._is_ours(expression) else written

    # Names.

    def _is_ours(self, node: Node) -> bool:
        """Whether an expression can be computed here: not a name that Nomad fills in where the task runs."""
        return _root(node) in (None, "var", "local")

    def _identifier(self, node: Node) -> str:
        return f"${{{node.text}}}"

    def _get_attr_expr_term(self, node: Node) -> Any:
        if not self._is_ours(node):
            return f"${{{node.text}}}"
        whole, attribute = node.children
        key = attribute.children[-1].text
        if whole.rule == "identifier":
            return self._variable(node, key) if whole.text == "var" else self._local(node, key)
        return self.value(whole)[key]

    def _index_expr_term(self, node: Node) -> Any:
        if not self._is_ours(node):
            return f"${{{node.text}}}"
        whole, index = node.children
        inner = next(child for child in index.children if child.rule == "INT_LITERAL" or not child.is_token)
        key = int(inner.text) if inner.is_token else self.value(inner)
        value = self.value(whole)
        return value[int(key)] if isinstance(value, list) else value[str(key)]

    def _variable(self, node: Node, name: str) -> Any:
        if name not in self._variables:
            raise self._refuse(node, f"names var.{name}, and no variable block declares it")
        value = self._variables[name]
        if isinstance(value, Unset):
            raise self._refuse(node, f"needs var.{name}, which has no default", f"give it: --var {name}=VALUE")
        return value

    def _local(self, node: Node, name: str) -> Any:
        if name not in self._locals:
            if name not in self._local_nodes:
                raise self._refuse(node, f"names local.{name}, and no locals block declares it")
            if name in self._open:
                raise self._refuse(node, f"names local.{name}, which leans on itself")
            self._open.add(name)
            self._locals[name] = self.value(self._local_nodes[name])
        return self._locals[name]

    # Operators and functions.

    def _binary_op(self, node: Node) -> Any:
        left, term = node.children[:2]
        sign = term.children[0].text.strip()
        result = _SIGNS[sign](self.value(left), self.value(term.children[-1]))
        return _number(result) if isinstance(result, float) else result

    def _unary_op(self, node: Node) -> Any:
        value = self.value(node.children[-1])
        return (not value) if node.text.startswith("!") else -value

    def _conditional(self, node: Node) -> Any:
        which, then, other = (child for child in node.children if not child.is_token)
        return self.value(then if self.value(which) else other)

    def _function_call(self, node: Node) -> Any:
        name = node.children[0].text
        if name not in hcl_functions.FUNCTIONS:
            raise self._refuse(node, f"calls {name}(), which Yurt does not compute", AS_JSON)
        arguments = node.first("arguments")
        if arguments and arguments.first("ELLIPSIS"):
            raise self._refuse(node, f"calls {name}() with a list of arguments, which Yurt does not compute", AS_JSON)
        given = [self.value(child) for child in arguments.children if not child.is_token] if arguments else []
        return hcl_functions.FUNCTIONS[name](*given)


def _root(node: Node) -> str | None:
    """The first word of a name such as ``attr.cpu.arch``; None for what is not a name."""
    while node.rule in ("get_attr_expr_term", "index_expr_term"):
        node = node.children[0]
    return node.text if node.rule == "identifier" else None


def _closing(text: str, at: int) -> int:
    """Where the brace is that closes the one before `at`; -1 if there is none."""
    depth, quoted = 1, False
    while at < len(text):
        letter = text[at]
        if quoted:
            at += letter == "\\"
            quoted = letter != '"'
        elif letter == '"':
            quoted = True
        elif letter in "{}":
            depth += 1 if letter == "{" else -1
            if not depth:
                return at
        at += 1
    return -1


def _number(value: float) -> float | int:
    return int(value) if value.is_integer() else value


def text_of(value: Any) -> str:
    """A value inside a text, as HCL writes it. Raises ValueError for null and containers."""
    if value is None or isinstance(value, list | dict):
        raise ValueError("a list, an object or null is no text")
    return value if isinstance(value, str) else json.dumps(value)


def _cut(text: str) -> str:
    first = text.strip().splitlines()[0] if text.strip() else ""
    return f"{first[:40]!r}"
