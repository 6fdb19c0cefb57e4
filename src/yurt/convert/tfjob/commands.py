"""The words that a container runs: its command and args, or what its image starts by itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from yurt.convert.converted import Note
from yurt.convert.tfjob.expansion import expanded, names_in, shell_line
from yurt.convert.tfjob.parts import RoleRead

SHELL: Final = "/bin/sh"
#: ``sh -c`` with this enters a folder and becomes the words after it; `writing` knows it again.
ENTER: Final = 'cd {folder} && exec "$@"'
_PROGRAM: Final = re.compile(r"[^-].*")


@dataclass(frozen=True, slots=True)
class ImageFacts:
    """What an image says of itself: what it starts, and the folder in which it does."""

    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    folder: str = ""


Images = Callable[[str], ImageFacts | None]
"""What is known here of an image, by its name; None where it is not here."""


def no_images(_: str) -> ImageFacts | None:
    """Nothing is known of any image."""
    return None


def words_of(
    role: RoleRead, values: Mapping[str, str], late: Mapping[str, object], images: Images, notes: list[Note]
) -> tuple[str, ...]:
    """What the task runs; `late` are variables that only the cluster knows, which a shell then fills in."""
    words = _written(role, images, notes)
    asked = [name for word in words for name in names_in(word) if name in late and name not in values]
    if asked:
        line = f"exec {shell_line(words, values, lambda name: name in late)}"
        if role.folder:
            line = f"cd {shlex.quote(role.folder)} && {line}"
        return (SHELL, "-c", line)
    plain = [expanded(word, values) for word in words]
    if not role.folder:
        if plain[0].endswith(".py"):
            notes.append(role.container.note(f"runs {plain[0]} itself; Yurt runs a script by `python`"))
        return tuple(plain)
    return (SHELL, "-c", ENTER.format(folder=shlex.quote(role.folder)), "sh", *plain)


def _written(role: RoleRead, images: Images, notes: list[Note]) -> list[str]:
    if role.command:
        return [*role.command, *(role.args or ())]
    facts = images(role.image) if role.image else None
    if facts is not None and (words := [*facts.entrypoint, *(role.args or facts.cmd)]):
        role.folder = role.folder or facts.folder or None
        what = "`" + shlex.join(words)[:80] + "`"
        notes.append(role.container.note(f"leaves its command to the image, which starts {what}, as Docker here has it"))
        return words
    image = role.image or "the image"
    pull = f", or `docker pull {role.image}`, so that Yurt can look" if role.image else ""
    if role.args and _PROGRAM.fullmatch(role.args[0]):
        at = role.container.peek("args") or role.container
        notes.append(at.note(f"is taken as the whole command: {image} may have an entry point of its own"))
        return list(role.args)
    what = "has args and no command" if role.args else "has no command"
    role.container.refuse(
        f"{what}, and what {image} starts by itself cannot be seen from here",
        f"write command: [python, ...] into this container{pull}",
    )
