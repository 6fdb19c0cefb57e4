"""YAML as a tree of plain data that remembers where everything stood and how it was written.

PyYAML composes the nodes; the walk over them is ours, because its constructor forgets the places,
lets the second of two equal keys win, and follows aliases without end.
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import Any, NoReturn

import yaml

from yurt.job.findings import Finding, Loc, quoted
from yurt.job.positions import Place
from yurt.job.written import Written

MOST_NODES = 10_000
"""Values in one file, those that aliases repeat included: a job has some dozens."""
DEEPEST = 40

_STANDARD = "tag:yaml.org,2002:"
_NO_TEXT = {f"{_STANDARD}{tag}" for tag in ("int", "float", "bool", "null")}
_TEXT = {f"{_STANDARD}{tag}" for tag in ("str", "timestamp", "value")}
_MERGE = f"{_STANDARD}merge"
_Pair = tuple[yaml.Node, yaml.Node]

SMALLEST_JOB = "the smallest job is `name: weather` and `command: python train.py`, in two lines"


class NotYamlError(Exception):
    """The text cannot be read at all; `finding` says where and why."""

    def __init__(self, message: str, hint: str | None = None, place: Place | None = None) -> None:
        super().__init__(message)
        self.finding = Finding((), message, hint, place)


class _Loader(yaml.SafeLoader):
    """Counts while it composes, so that no file can take long or nest beyond Python's stack."""

    nodes = 0
    depth = 0

    def compose_node(self, parent: yaml.Node | None, index: Hashable) -> yaml.Node | None:
        self.nodes += 1
        self.depth += 1
        if self.nodes > MOST_NODES:
            _too_many(self.here())
        if self.depth > DEEPEST:
            _too_deep(self.here())
        node = super().compose_node(parent, index)  # type: ignore[arg-type]
        self.depth -= 1
        return node

    def here(self) -> Place:
        """Where the next part of the text begins."""
        return _place(self.peek_event().start_mark)  # type: ignore[no-untyped-call]


class Tree:
    """The data of one file, the place of each of its parts, and the mistakes of its form."""

    def __init__(self, text: str) -> None:
        """Raises `NotYamlError` where nothing of the text can be read."""
        self.places: dict[Loc, Place] = {}
        self.findings: list[Finding] = []
        self._nodes = 0
        try:
            self._loader = _Loader(text)
            root = self._only_document()
        except yaml.reader.ReaderError as error:
            before = text[: int(error.position)]
            place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
            code = f"U+{ord(text[len(before)]):04X}"
            raise NotYamlError(f"holds a character that YAML does not allow ({code})", None, place) from None
        except yaml.MarkedYAMLError as error:
            raise _in_plain_words(error) from None
        self.places[()] = _place(root.start_mark)
        self.data = self._value(root, (), 0)

    def _only_document(self) -> yaml.Node:
        loader = self._loader
        root = loader.get_node() if loader.check_node() else None
        if root is None:
            raise NotYamlError("is empty", SMALLEST_JOB)
        if loader.check_node():
            hint = "remove the line ---"
            raise NotYamlError("holds a second document, and a job is one", hint, loader.here())
        return root

    def _value(self, node: yaml.Node, at: Loc, depth: int) -> Any:
        self._count(node, depth)
        if isinstance(node, yaml.MappingNode) and node.tag == f"{_STANDARD}map":
            return self._mapping(node, at, depth)
        if isinstance(node, yaml.SequenceNode) and node.tag == f"{_STANDARD}seq":
            items = []
            for index, item in enumerate(node.value):
                self.places[(*at, index)] = _place(item.start_mark)
                items.append(self._value(item, (*at, index), depth + 1))
            return items
        if isinstance(node, yaml.ScalarNode) and node.tag in _TEXT:
            return str(node.value)
        if isinstance(node, yaml.ScalarNode) and node.tag in _NO_TEXT:
            return self._scalar(node)
        tag = quoted(node.tag.replace(_STANDARD, "!!"))[1:-1]
        place = _place(node.start_mark)
        hint = "remove it; text that begins with ! needs quotes"
        self.findings.append(Finding(at, f"has the tag {tag}, which means nothing in a job", hint, place))
        kinds: dict[type[yaml.Node], str] = {yaml.MappingNode: "map", yaml.SequenceNode: "seq"}
        node.tag = _STANDARD + kinds.get(type(node), "str")
        return self._value(node, at, depth)

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        try:
            return Written(self._loader.construct_object(node), str(node.value))
        except (ValueError, ArithmeticError, LookupError, yaml.YAMLError):  # such as 0x_, or !!int on a word
            return str(node.value)

    def _mapping(self, node: yaml.MappingNode, at: Loc, depth: int) -> dict[str, Any]:
        data: dict[str, Any] = {}
        own, merged = self._pairs(node, at, depth)
        for index, (key_node, value_node) in enumerate([*own, *merged]):
            place = _place(key_node.start_mark)
            if not isinstance(key_node, yaml.ScalarNode):
                self.findings.append(Finding(at, "has a key that is not a plain word", None, place))
                continue
            key = str(key_node.value)
            here = (*at, key)
            if key not in data:
                self.places[here] = place
                data[key] = self._value(value_node, here, depth + 1)
            elif index < len(own):
                message = f"is written twice; the first is in line {self.places[here][0]}"
                self.findings.append(Finding(here, message, "keep one of them", place))
        return data

    def _pairs(self, node: yaml.MappingNode, at: Loc, depth: int) -> tuple[list[_Pair], list[_Pair]]:
        """The pairs that a mapping holds itself, and those that ``<<`` brings in, nearest first."""
        own: list[_Pair] = []
        merged: list[_Pair] = []
        for key, value in node.value:
            self._count(key, depth)
            if key.tag != _MERGE:
                own.append((key, value))
                continue
            sources = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for source in sources:
                if isinstance(source, yaml.MappingNode):
                    inner_own, inner_merged = self._pairs(source, at, depth + 1)
                    merged += [*inner_own, *inner_merged]
                else:
                    place = _place(key.start_mark)
                    self.findings.append(Finding((*at, "<<"), "can only take in a mapping", None, place))
        return own, merged

    def _count(self, node: yaml.Node, depth: int) -> None:
        self._nodes += 1
        if self._nodes > MOST_NODES:
            _too_many(_place(node.start_mark))
        if depth > DEEPEST:
            _too_deep(_place(node.start_mark))


def _place(mark: Any) -> Place:
    return (mark.line + 1, mark.column + 1)


def _too_many(place: Place) -> NoReturn:
    raise NotYamlError(f"holds more than {MOST_NODES:,} values, repeated ones included", None, place)


def _too_deep(place: Place) -> NoReturn:
    raise NotYamlError("is nested too deeply, or refers to itself", None, place)


_ALIAS_HINT = 'text that begins with * needs quotes: "*.csv"'
_PLAIN_WORDS: tuple[tuple[str, str, str | None, bool], ...] = (
    # what PyYAML says, what we say, the hint, and whether the mistake begins where its context does
    (r"found character '\\t'", "has a tab where YAML wants spaces", "indent with spaces", False),
    (
        "mapping values are not allowed",
        "has a colon that YAML does not expect here",
        "text with a colon and a space needs quotes; a key above may lack its own colon",
        False,
    ),
    ("could not find expected ':'", "is a line without a colon after its key", None, True),
    ("expected <block end>", "is not indented as the lines above it", "line it up with the keys beside it", False),
    ("found unexpected end of stream", "has a quote that is never closed", None, True),
    ("expected ',' or", "has a bracket or brace that is not closed, or lacks a comma", None, False),
    ("found undefined alias", "refers to a name that nothing above defines", _ALIAS_HINT, False),
    ("expected alphabetic or numeric character", "has a name after * or & that cannot be read", _ALIAS_HINT, False),
    ("that cannot start any token", "begins with a character that YAML keeps for itself", "quote the value", False),
    ("unknown escape character", "has a backslash that double quotes do not know", "use single quotes", False),
)


def _in_plain_words(error: yaml.MarkedYAMLError) -> NotYamlError:
    problem = error.problem or ""
    mark = error.problem_mark or error.context_mark
    for known, message, hint, at_context in _PLAIN_WORDS:
        if re.search(known, problem):
            start = error.context_mark if at_context and error.context_mark else mark
            return NotYamlError(message, hint, _place(start) if start else None)
    said = "".join(letter if letter.isprintable() else " " for letter in problem)[:100]
    return NotYamlError(f"is not YAML here: {said}", None, _place(mark) if mark else None)
