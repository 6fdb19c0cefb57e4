"""A Nomad job in HCL2, as `Part`: variables and locals computed, blocks by their names, every part with its line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yurt.convert.nomad.hcl_syntax import Node, parse
from yurt.convert.nomad.hcl_values import AS_JSON, Unset, Values
from yurt.convert.nomad.keys import REPEATED
from yurt.convert.nomad.parts import Part, within
from yurt.convert.source import Source
from yurt.errors import UsageError

_TOP = frozenset({"job", "variable", "variables", "locals"})
#: Blocks whose label names a place of the job.
_PLACES = frozenset({"job", "group", "task"})


def jobs_from_hcl(source: Source, given: Mapping[str, str]) -> list[Part]:
    """The jobs of a text; `given` are values of variables, which win over the defaults.

    Raises `UsageError` for what is not HCL2, or not computed by Yurt.
    """
    (body,) = parse(source).children
    blocks = [child for child in body.children if child.rule == "block"]
    for child in body.children:
        name = child.children[0].text
        if child.rule != "block" or name not in _TOP:
            raise UsageError(
                f"{source.file}:{child.line} has {name!r} at the top, where Nomad knows job, variable and locals"
            )
    reader = _Reader(source, _values(source, blocks, given))
    return [reader.job(block) for block in blocks if block.children[0].text == "job"]


def _values(source: Source, blocks: list[Node], given: Mapping[str, str]) -> Values:
    plain = Values(source.file, {}, {})
    variables: dict[str, Any] = {}
    local_nodes: dict[str, Node] = {}
    for block in blocks:
        kind = block.children[0].text
        for attribute in _attributes(block):
            name = attribute.children[0].text
            if kind == "locals":
                if name in local_nodes:
                    raise UsageError(f"{source.file}:{attribute.line} declares local.{name} a second time")
                local_nodes[name] = attribute.children[-1]
            elif kind == "variables":
                variables[name] = plain.value(attribute.children[-1])
        if kind == "variable":
            name = _label(block, plain)
            if name in variables:
                raise UsageError(f"{source.file}:{block.line} declares var.{name} a second time")
            default = [one for one in _attributes(block) if one.children[0].text == "default"]
            typed = [one.children[-1].text for one in _attributes(block) if one.children[0].text == "type"]
            variables[name] = plain.value(default[0].children[-1]) if default else Unset(name)
            if name in given:
                variables[name] = _given(given[name], typed[0].strip() if typed else "")
    if unknown := sorted(set(given) - set(variables)):
        raise UsageError(f"--var {unknown[0]}: {source.file} declares no such variable")
    return Values(source.file, variables, local_nodes)


def _given(text: str, kind: str) -> Any:
    """A value from the command line: text, unless the variable is of another kind."""
    if kind in ("", "string", "any"):
        return text
    values = Values("--var", {}, {})
    (body,) = parse(Source("--var", f"it = {text}")).children
    return values.value(body.children[0].children[-1])


def _attributes(block: Node) -> list[Node]:
    body = block.first("body")
    return [child for child in body.children if child.rule == "attribute"] if body else []


def _label(block: Node, values: Values) -> str:
    labels = [child for child in block.children[1:] if child.rule in ("string", "identifier")]
    return values.name(labels[0]) if labels else ""


class _Reader:
    def __init__(self, source: Source, values: Values) -> None:
        self._file = source.file
        self._values = values

    def job(self, block: Node) -> Part:
        """A job block."""
        return self._block(block, "", key="job")

    def _block(self, block: Node, place: str, key: str) -> Part:
        label = _label(block, self._values)
        if block.children[0].text in _PLACES:
            place, key = f"{place}/{label}" if place else label, ""
        inside = within(place, key)
        parts: dict[str, Part] = {}
        body = block.first("body")
        for child in body.children if body else ():
            self._add(parts, child, inside)
        if label and "name" not in parts:
            parts["name"] = Part(label, "name", inside, self._file, block.line, taken=True)
        return Part(parts, key, place, self._file, block.line)

    def _add(self, parts: dict[str, Part], child: Node, inside: str) -> None:
        name = child.children[0].text
        if child.rule == "attribute":
            if name in parts:
                raise UsageError(f"{self._file}:{child.line} sets {name} a second time")
            parts[name] = self._plain(self._values.value(child.children[-1]), name, inside, child.line)
            return
        if name == "dynamic":
            raise UsageError(
                f"{self._file}:{child.line} has a dynamic block, which Yurt does not compute", hint=AS_JSON
            )
        part = self._block(child, inside, name)
        earlier = parts.get(name)
        if earlier is None and name not in REPEATED:
            parts[name] = part
        elif earlier is None:
            parts[name] = Part([part], name, inside, self._file, child.line)
        elif isinstance(earlier.value, list):
            earlier.value.append(part)
        else:
            parts[name] = Part([earlier, part], name, inside, self._file, earlier.line)

    def _plain(self, value: Any, key: str, place: str, line: int) -> Part:
        if isinstance(value, dict):
            inside = within(place, key)
            value = {name: self._plain(inner, name, inside, line) for name, inner in value.items()}
        elif isinstance(value, list):
            value = [self._plain(inner, key, place, line) for inner in value]
        return Part(value, key, place, self._file, line)
