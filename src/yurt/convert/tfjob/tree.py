"""A manifest as a tree that knows where each part stands and whether it has been accounted for.

Nothing is lost in silence: what no reader takes is found by `unread` and told.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

import yaml

from yurt.convert.accounted import Accounted
from yurt.convert.converted import Note
from yurt.convert.source import Source
from yurt.errors import UsageError

#: Values of one file, those that aliases repeat included; the largest public manifest has some hundreds.
MOST_NODES: Final = 50_000
DEEPEST: Final = 60
_STANDARD: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{_STANDARD}merge"
_Pair = tuple[yaml.Node, yaml.Node]


@dataclass(slots=True, eq=False)
class Node(Accounted):
    """One value: a mapping or a list of nodes, or a scalar, whose `text` is as it was written.

    `path` is the dotted path from the document's root. `line` and `column` count from 1; `key` is where the key of the
    value stands, for a value of a mapping.
    """

    value: Any
    path: str
    file: str
    line: int
    column: int
    text: str = ""
    taken: bool = field(default=False, repr=False)

    def get(self, key: str) -> Node | None:
        """The value of a mapping under this key, and accounted for; None where there is none or it is null."""
        inner = self.value.get(key) if isinstance(self.value, dict) else None
        if inner is None:
            return None
        inner.taken = True
        return None if inner.value is None else inner

    def peek(self, key: str) -> Node | None:
        """The same, without accounting for it."""
        inner = self.value.get(key) if isinstance(self.value, dict) else None
        return None if inner is None or inner.value is None else inner

    def mapping(self, key: str) -> Node | None:
        """The mapping under a key, accounted for as such. Raises UsageError for anything else."""
        return self._of_kind(key, dict, "a mapping")

    def items(self, key: str) -> list[Node]:
        """The entries of the list under a key, each accounted for as such. Raises UsageError for anything else."""
        inner = self._of_kind(key, list, "a list")
        found = [] if inner is None else [item for item in inner.value if item.value is not None]
        for item in found:
            item.taken = True
        return found

    def mappings(self, key: str) -> list[Node]:
        """The same, where each entry is a mapping."""
        found = self.items(key)
        for item in found:
            if not isinstance(item.value, dict):
                item.refuse(f"must be a mapping, not {shown(item)}")
        return found

    def string(self, key: str) -> str | None:
        """The text under a key; a number or a word that YAML reads as one stands for its text as written."""
        inner = self.get(key)
        return None if inner is None else inner.as_text()

    def as_text(self) -> str:
        """This scalar's text. Raises UsageError for a mapping or a list."""
        if isinstance(self.value, dict | list):
            self.refuse(f"must be text, not {shown(self)}")
        return self.value if isinstance(self.value, str) else self.text

    def whole(self, key: str) -> int | None:
        """The whole number under a key, 0 or more. Raises UsageError for anything else."""
        inner = self.get(key)
        if inner is None:
            return None
        value = inner.value
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            inner.refuse(f"must be a whole number, not {shown(inner)}")
        return int(value)

    def note(self, message: str) -> Note:
        """Something to tell about this part."""
        return Note(self.path, message, self.file, self.line, self.column)

    def refuse(self, message: str, hint: str | None = None) -> NoReturn:
        """Raises UsageError about this part."""
        raise UsageError(f"{self.where}: {self.path}: {message}" if self.path else f"{self.where} {message}", hint=hint)

    @property
    def where(self) -> str:
        """``tfjob.yaml:12:3``, to begin a sentence."""
        return f"{self.file}:{self.line}:{self.column}"

    def _of_kind(self, key: str, kind: type, wanted: str) -> Node | None:
        inner = self.get(key)
        if inner is not None and not isinstance(inner.value, kind):
            inner.refuse(f"must be {wanted}, not {shown(inner)}")
        return inner


def shown(node: Node) -> str:
    """What stands there, in few words."""
    if isinstance(node.value, list):
        return "a list"
    return "a mapping" if isinstance(node.value, dict) else (node.text or repr(node.value))[:40]


def unread(node: Node) -> Iterator[Node]:
    """Every part that nobody has taken: the outermost ones only. What is null says nothing."""
    if not node.taken:
        yield node
        return
    inner = node.value.values() if isinstance(node.value, dict) else node.value if isinstance(node.value, list) else ()
    for each in inner:
        if each.value is not None:
            yield from unread(each)


def documents(source: Source) -> list[Node]:
    """The documents of a YAML or JSON text; those that are empty are left out. Raises UsageError for bad YAML."""
    reader = _Reader(source)
    try:
        loader = _Loader(source.text)
        found = []
        while loader.check_node():
            if (root := loader.get_node()) is not None:
                found.append(reader.node(root, "", 0))
    except yaml.reader.ReaderError as error:
        line = source.text.count("\n", 0, int(error.position)) + 1
        raise UsageError(f"{source.file}:{line} holds a character that YAML does not allow") from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f":{mark.line + 1}:{mark.column + 1}" if mark else ""
        raise UsageError(f"{source.file}{place} is not YAML: {error.problem or error.context}") from None
    return [one for one in found if one.value is not None]


class _Loader(yaml.SafeLoader):
    """Counts while it composes, so that no file takes long or nests beyond Python's stack."""

    nodes = 0
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Hashable) -> yaml.Node | None:
        self.nodes += 1
        self.depth += 1
        if self.nodes > MOST_NODES or self.depth > DEEPEST:
            raise yaml.MarkedYAMLError(
                problem="nested too deeply" if self.depth > DEEPEST else f"more than {MOST_NODES:,} values",
                problem_mark=self.peek_event().start_mark,  # type: ignore[no-untyped-call]
            )
        node = super().compose_node(parent, index)  # type: ignore[arg-type]
        self.depth -= 1
        return node


class _Reader:
    def __init__(self, source: Source) -> None:
        self._file = source.file
        self._count = 0
        self._construct = yaml.SafeLoader("")

    def node(self, node: yaml.Node, path: str, depth: int, key: yaml.Node | None = None) -> Node:
        """A node of ours; `key` is the node of its key, whose place is the one to show."""
        mark = (key or node).start_mark
        place = (self._file, mark.line + 1, mark.column + 1)
        self._count += 1
        if self._count > MOST_NODES or depth > DEEPEST:
            what = "is nested too deeply, or refers to itself" if depth > DEEPEST else f"holds more than {MOST_NODES:,}"
            raise UsageError(f"{self._file}:{place[1]}:{place[2]} {what}" + ("" if depth > DEEPEST else " values"))
        if isinstance(node, yaml.MappingNode):
            return Node(self._mapping(node, path, depth), path, *place)
        if isinstance(node, yaml.SequenceNode):
            return Node(
                [self.node(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(node.value)], path, *place
            )
        try:
            value = self._construct.construct_object(node)
        except (ValueError, ArithmeticError, LookupError, yaml.YAMLError):
            value = str(node.value)
        if not isinstance(value, bool | int | float | str | None):
            value = str(node.value)  # such as a date
        return Node(value, path, *place, text=str(node.value))

    def _mapping(self, node: yaml.MappingNode, path: str, depth: int) -> dict[str, Node]:
        found: dict[str, Node] = {}
        own, merged = _pairs(node, depth)
        for index, (key, value) in enumerate([*own, *merged]):
            name = self._key(key, path)
            if name not in found:
                found[name] = self.node(value, _below(path, name), depth + 1, key)
            elif index < len(own):
                mark = key.start_mark
                raise UsageError(
                    f"{self._file}:{mark.line + 1}:{mark.column + 1}: {_below(path, name)}: is written twice, first in "
                    f"line {found[name].line}",
                    hint="keep one of them",
                )
        return found

    def _key(self, key: yaml.Node, path: str) -> str:
        if not isinstance(key, yaml.ScalarNode):
            mark = key.start_mark
            raise UsageError(
                f"{self._file}:{mark.line + 1}:{mark.column + 1}: {path + ': ' if path else ''}has a key that is not "
                "a plain word",
                hint="is it a template that has to be filled in first?",
            )
        return str(key.value)


def _pairs(node: yaml.MappingNode, depth: int) -> tuple[list[_Pair], list[_Pair]]:
    """The pairs that a mapping holds itself, and those that ``<<`` brings in, nearest first."""
    own: list[_Pair] = []
    merged: list[_Pair] = []
    for key, value in node.value:
        if key.tag != _MERGE:
            own.append((key, value))
            continue
        for one in value.value if isinstance(value, yaml.SequenceNode) else [value]:
            if isinstance(one, yaml.MappingNode) and depth <= DEEPEST:
                inner_own, inner_merged = _pairs(one, depth + 1)
                merged += [*inner_own, *inner_merged]
    return own, merged


def _below(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
