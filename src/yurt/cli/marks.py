"""Which task a line is of: ``worker/0 | text``, each task in a colour of its own."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from typing import Final

from yurt.cli.out import Out

#: The terminal's own colours, so that they suit its background, by their names and codes.
_COLOURS: Final = {
    "cyan": 36,
    "green": 32,
    "magenta": 35,
    "yellow": 33,
    "blue": 34,
    "bright_cyan": 96,
    "bright_green": 92,
    "bright_magenta": 95,
    "bright_yellow": 93,
    "bright_blue": 94,
}
RED: Final = 31
GREEN: Final = 32
YELLOW: Final = 33
DIM: Final = 2
BOLD: Final = 1


def colour_wanted(out: Out, *, no_color: bool) -> bool:
    """Whether to use colours: on a terminal that has them, unless NO_COLOR (no-color.org) or the option says no."""
    return out.isatty() and not no_color and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def painted(text: str, code: int, *, colour: bool) -> str:
    """The text in a colour, if there are any."""
    return f"\x1b[{code}m{text}\x1b[0m" if colour else text


def own_line(text: str, *, colour: bool) -> str:
    """A line of Yurt's own, among those of the tasks: ``yurt: text``."""
    return f"{painted('yurt:', BOLD, colour=colour)} {text}"


class Marks:
    """The mark of each task, all of one width."""

    def __init__(self, tasks: Iterable[str], *, colour: bool) -> None:
        names = list(tasks)
        width = max((len(name) for name in names), default=0)
        self._colour = colour
        self._styles = dict(zip(names, itertools.cycle(_COLOURS), strict=False))
        self._marks = {
            name: painted(f"{name:<{width}} |", _COLOURS[self._styles[name]], colour=colour) + " " for name in names
        }

    def own(self, lines: Iterable[str]) -> str:
        """Lines of Yurt's own, each with its newline."""
        return "".join(f"{own_line(line, colour=self._colour)}\n" for line in lines)

    def style(self, task: str) -> str:
        """The name of the task's colour."""
        return self._styles[task]

    def mark(self, task: str, lines: str) -> str:
        """`lines`, each with its newline, each with the task's mark before it."""
        if not lines:
            return ""
        mark = self._marks[task]
        return mark + lines[:-1].replace("\n", f"\n{mark}") + "\n"
