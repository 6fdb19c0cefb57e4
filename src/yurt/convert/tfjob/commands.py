"""The words that a container runs: its command and args, or what its image starts by itself."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from yurt.convert.converted import Note
from yurt.convert.tfjob.expansion import expanded, names_in, shell_word
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
    words: Sequence[str],
    values: Mapping[str, str],
    late: Container[str] = (),
    *,
    folder: str | None = None,
    first: str = "",
) -> tuple[str, ...]:
    """What the task runs: the words with `values` filled in, and by a shell those of `late`, which only it knows.

    `folder` is where they run, `first` what the shell does before.
    """
    asked = any(name in late and name not in values for word in words for name in names_in(word))
    if asked or first:
        line = " ".join(shell_word(word, values, late) for word in words)
        enter = f"cd {folder} && " if folder else ""
        return (SHELL, "-c", f"{first}{enter}exec {line}")
    plain = [expanded(word, values) for word in words]
    return (SHELL, "-c", ENTER.format(folder=folder), "sh", *plain) if folder else tuple(plain)


def tell_about(role: RoleRead, words: Sequence[str], notes: list[Note]) -> None:
    """What is not taken literally of the words that a role runs; `words` are as they are written."""
    assert role.words is not None
    if role.words[0].endswith(".py"):
        notes.append(role.container.note(f"runs {role.words[0]} itself; Yurt runs a script by `python`"))
    notes.extend(
        role.container.note(f"holds {name}, which Yurt fills in for each task, and a TFJob does not")
        for name in ("{role}", "{index}", "{address}")
        if any(name in word for word in words)
    )


def needs_folder(words: Sequence[str]) -> bool:
    """Whether it matters where the words run: not for a Python that is told a script by its whole path."""
    if not PurePosixPath(words[0]).name.startswith("python"):
        return True
    script = next((word for word in words[1:] if not word.startswith("-")), "")
    return words[1:2] in (["-c"], ["-m"]) or not script.startswith("/")


def written(role: RoleRead, images: Images, notes: list[Note]) -> list[str]:
    """The words as they are written. Raises UsageError where neither the file nor the image says any."""
    if role.command:
        return [*role.command, *(role.args or ())]
    facts = images(role.image) if role.image else None
    if facts is not None and (words := [*facts.entrypoint, *(role.args or facts.cmd)]):
        role.folder = role.folder or facts.folder or None
        what = "`" + shlex.join(words)[:80] + "`"
        notes.append(
            role.container.note(f"leaves its command to the image, which starts {what}, as Docker here has it")
        )
        return words
    image = role.image or "the image"
    if not role.args or not _PROGRAM.fullmatch(role.args[0]):
        pull = f", or `docker pull {role.image}`, so that Yurt can look" if role.image else ""
        role.container.refuse(
            f"has {'args and ' if role.args else ''}no command, and what {image} starts is not known here",
            f"write command: [python, ...] into this container, or say it with --entrypoint{pull}",
        )
    at = role.container.peek("args") or role.container
    notes.append(at.note(f"is taken as the whole command: {image} may have an entry point of its own"))
    return list(role.args)
