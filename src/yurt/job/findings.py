"""Mistakes while they are collected: where in the job, what is said, what would be right.

Field readers raise `mistake`; pydantic gathers those of all fields, and `findings_of` takes them
out again, so that no wording but ours reaches a person.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, NoReturn

from pydantic_core import PydanticCustomError, ValidationError

if TYPE_CHECKING:
    from pydantic_core import InitErrorDetails

Loc = tuple[int | str, ...]
"""A path into the job, as in ``("roles", "worker", "memory")``; a number is a place in a list."""

_LONGEST = 60


@dataclass(frozen=True, slots=True)
class Finding:
    """One mistake, by its path; `place` is its line and column where the path alone would mislead."""

    at: Loc
    message: str
    hint: str | None = None
    place: tuple[int, int] | None = None


def mistake(message: str, hint: str | None = None) -> PydanticCustomError:
    """The error a field reader raises: one sentence, and what would be right."""
    return PydanticCustomError("job", "{said}", {"said": message, "hint": hint})


def said(error: PydanticCustomError) -> tuple[str, str | None]:
    """The sentence and the hint of a `mistake`."""
    context = error.context or {}
    return str(context.get("said", error.message())), context.get("hint")


def findings_of(error: ValidationError) -> list[Finding]:
    """Every mistake that pydantic gathered, in our words."""
    findings = []
    for one in error.errors(include_url=False, include_input=False):
        at = one["loc"][:-1] if one["loc"][-1:] == ("[key]",) else one["loc"]
        context = one.get("ctx", {})
        if one["type"] == "job":
            findings.append(Finding(at, str(context["said"]), context["hint"]))
        elif one["type"] == "missing":
            findings.append(Finding(at, "is missing", _MISSING.get(at)))
        else:
            message = one["msg"]
            findings.append(Finding(at, message[:1].lower() + message[1:]))
    return findings


def raise_findings(findings: Iterable[Finding]) -> NoReturn:
    """Hand findings to the model around this one, which puts its own path before theirs."""
    details: list[InitErrorDetails] = [
        {"type": mistake(one.message, one.hint), "loc": one.at, "input": None} for one in findings
    ]
    raise ValidationError.from_exception_data("job", details)


def quoted(text: str) -> str:
    """Text in double quotes on one line, cut where it is long."""
    shown = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text[:_LONGEST])
    return f'"{shown}…"' if len(text) > _LONGEST else f'"{shown}"'


def dotted(at: Loc) -> str:
    """A path as it is shown, such as ``roles.worker.memory`` or ``files[1]``."""
    shown = ""
    for part in at:
        if isinstance(part, int):
            shown += f"[{part}]"
        else:
            word = part if part and part.isprintable() and len(part) <= _LONGEST else quoted(part)
            shown += f".{word}" if shown else word
    return shown


def closest(word: str, choices: Iterable[str]) -> str | None:
    """The choice that `word` most likely means, if any is near enough."""
    from difflib import get_close_matches

    words = list(choices)
    begun = [choice for choice in words if choice.startswith(f"{word.lower()}-")]
    if len(begun) == 1:
        return begun[0]
    near = get_close_matches(word[:_LONGEST].lower().replace("_", "-"), words, n=1)
    if not near:
        near = get_close_matches(word[:_LONGEST].lower(), words, n=1)
    return near[0] if near else None


def did_you_mean(word: str, choices: Iterable[str]) -> str | None:
    """A hint such as ``did you mean chief?``, or nothing where no choice is near."""
    near = closest(word, choices)
    return f"did you mean {near}?" if near else None


_MISSING: dict[Loc, str] = {("name",): "add a line such as `name: weather`"}
