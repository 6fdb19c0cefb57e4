"""Variables that a Nomad task takes from a template, and the templates that write TF_CONFIG."""

from __future__ import annotations

import re
from typing import Final

from yurt.convert.converted import Note
from yurt.convert.nomad.parts import Part

_LINE: Final = re.compile(r"^\s*(?:export\s+)?([A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$")


def env_of_templates(task: Part, notes: list[Note]) -> dict[str, str]:
    """The variables of templates with ``env = true`` whose lines Nomad has nothing to fill in.

    What writes TF_CONFIG is dropped, since Yurt writes it; both are told.
    """
    from yurt.convert.nomad.tasks import usable

    env: dict[str, str] = {}
    for template in task.all("template"):
        data, as_env = template.peek("data"), template.peek("env")
        text = data.value if data and isinstance(data.value, str) else ""
        destination = template.peek("destination")
        if as_env is None or as_env.value is not True:
            if re.search(r"tf_?config", f"{text} {destination.value if destination else ''}", re.IGNORECASE):
                template.plain()
                notes.append(template.note("is left out: Yurt writes TF_CONFIG for every task, also as a file"))
            else:
                template.taken = False
            continue
        template.plain()
        if "TF_CONFIG" in text:
            notes.append(template.note("is left out: Yurt writes TF_CONFIG for every task"))
        for name, value in _plain_lines(text):
            if name == "TF_CONFIG":
                continue
            if value is None:
                notes.append(template.note(f"{name} is left out: Nomad fills it in, and Yurt does not"))
            elif (
                kept := usable(name, Part(value, name, template.place, template.file, template.line), notes)
            ) is not None:
                env[name] = kept
        if not text:
            notes.append(template.note("is left out: its text is in a file that Nomad reads"))
    return env


def _plain_lines(text: str) -> list[tuple[str, str | None]]:
    """Names and values of the lines; None is the value of a line with template code, or inside of some."""
    found: list[tuple[str, str | None]] = []
    depth = 0
    for line in text.splitlines():
        begun = len(re.findall(r"\{\{-?\s*(?:range|with|if|block|define)\b", line))
        ended = len(re.findall(r"\{\{-?\s*end\b", line))
        if match := _LINE.match(line):
            value = match[2]
            plain = "{{" not in line and not depth
            if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
                value = value[1:-1]
            found.append((match[1], value if plain else None))
        depth = max(0, depth + begun - ended)
    return found
