"""The names in a job: its own, those of its roles, and those of environment variables."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from enum import StrEnum
from typing import Any, TypeVar

from yurt.job.findings import closest, mistake, quoted
from yurt.job.kinds import RoleName
from yurt.job.written import bare, found, read_text, yaml_reads

NAME_PATTERN = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
LONGEST_NAME = 36
"""Engines make DNS labels of ``<name><run id's end, up to 14>-<role>-<index>``, and those end at 63."""
RUN_ID_END = 14
LONGEST_LABEL = 63
MOST_REPLICAS = 10_000
"""The most replicas of a role; ``-worker-9999`` still fits the label."""

ENV_PATTERN = r"^[A-Za-z_][A-Za-z0-9_]*$"

Choice = TypeVar("Choice", bound=StrEnum)


def read_name(raw: Any) -> str:
    """The job's name, in the form that every engine takes.

    Raises a mistake that says which rule is broken and proposes a mended name.
    """
    text = read_text(raw, wanted="a name")
    rule = _broken_rule(text)
    if rule:
        raise mistake(f"{rule}", f"did you mean {mended(text)}?")
    return text


def _broken_rule(text: str) -> str | None:
    if not text:
        return "is empty"
    odd = list(dict.fromkeys(re.findall(r"[^-a-z0-9]", text)))
    if odd:
        shown = ", ".join(quoted(letter) for letter in odd[:5])
        return f"may only have small letters a to z, digits and -, not {shown}"
    if not text[0].isalpha():
        return f"must begin with a letter, not {quoted(text[0])}"
    if text.endswith("-"):
        return 'must end with a letter or a digit, not "-"'
    if len(text) > LONGEST_NAME:
        return f"has {len(text)} characters; at most {LONGEST_NAME} fit every engine"
    return None


def mended(text: str) -> str:
    """A valid name that is as near to `text` as can be."""
    ascii_text = unicodedata.normalize("NFKD", text[:200]).encode("ascii", "ignore").decode().lower()
    words = re.sub(r"[^a-z0-9]+", "-", ascii_text).strip("-")
    if not words:
        return "my-job"
    if not words[0].isalpha():
        words = f"job-{words}"
    return words[:LONGEST_NAME].rstrip("-")


def read_env_name(raw: Any) -> str:
    """The name of an environment variable. Raises a mistake, also for those that Yurt sets itself."""
    text = read_text(raw, wanted="the name of an environment variable")
    if text == "TF_CONFIG" or text.startswith("YURT_"):
        raise mistake("is set by Yurt itself, so a job cannot set it", "remove it, or choose another name")
    if not re.fullmatch(ENV_PATTERN, text):
        better = re.sub(r"[^A-Za-z0-9_]", "_", text[:60])
        if better.strip("_") and better[0].isdigit():
            better = f"_{better}"
        hint = f"did you mean {better}?" if better.strip("_") else None
        message = "is no name for an environment variable: letters, digits and _ only, no digit first"
        raise mistake(message, hint)
    return text


def read_env_value(raw: Any) -> str:
    """The value of an environment variable: text, or a number's text as it was written.

    Raises a mistake for booleans and null, which nobody can know the wanted spelling of.
    """
    value = bare(raw)
    if value is not None and not isinstance(value, bool):
        return read_text(raw, wanted="text or a number")
    word = getattr(raw, "text", None)
    if value is None:
        other = f'"{word}"' if word else '"null"'
        raise mistake("has no value", f'quote what the script should see: "" or {other}')
    seen = "true" if value else "false"
    word = word or seen
    other = ("1" if value else "0") if word == seen else seen
    clause = yaml_reads(raw) or f"{value} has several spellings"
    raise mistake(f"must be text, but {clause}", f'quote it: "{word}" or "{other}"')


_NEAR_ROLES = {
    "master": RoleName.CHIEF,
    "coordinator": RoleName.CHIEF,
    "leader": RoleName.CHIEF,
    "parameter-server": RoleName.PS,
    "parameter-servers": RoleName.PS,
    "eval": RoleName.EVALUATOR,
}


def guess_role(text: str) -> RoleName | None:
    """The role that a word most likely means, whether or not it is spelt right."""
    word = text.lower().replace("_", "-")
    near = _NEAR_ROLES.get(word) or closest(word, [str(role) for role in RoleName])
    return RoleName(near) if near else None


def read_role_name(raw: Any) -> RoleName:
    """One of the four roles. Raises a mistake with the role that was probably meant."""
    text = bare(raw)
    if isinstance(text, str) and text in list(RoleName):
        return RoleName(text)
    guess = guess_role(text) if isinstance(text, str) else None
    known = ", ".join(RoleName)
    raise mistake(f"is not a role; the roles are {known}", f"did you mean {guess}?" if guess else None)


def read_choice(raw: Any, choices: type[Choice], *, for_false: str | None = None) -> Choice:
    """One word of a closed list; `for_false` is the word that somebody who wrote ``no`` meant."""
    value = bare(raw)
    words = [str(choice) for choice in choices]
    wanted = f"one of {', '.join(words)}"
    if isinstance(value, str) and value in words:
        return choices(value)
    if clause := yaml_reads(raw):
        hint = f"did you mean {for_false}?" if value is False and for_false else None
        raise mistake(f"must be {wanted}, but {clause}", hint)
    if value is None:
        raise mistake(f"has no value; it must be {wanted}")
    near = closest(value, words) if isinstance(value, str) else None
    shown = quoted(value) if isinstance(value, str) else found(raw)
    raise mistake(f"must be {wanted}, not {shown}", f"did you mean {near}?" if near else None)


def unknown_key(key: str, known: Iterable[str]) -> tuple[str, str | None]:
    """The sentence and the hint for a key that nothing reads."""
    words = list(known)
    near = closest(key, words)
    hint = f"did you mean {near}?" if near else f"the keys here are {', '.join(words)}"
    return "is not a known key", hint
