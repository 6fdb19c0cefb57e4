"""Live lines at the bottom of a terminal, the tasks' own lines above them. The one file that imports rich."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from itertools import zip_longest
from typing import Final

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live as RichLive
from rich.segment import Segment
from rich.text import Text

from yurt.cli.frame import BAR, METRICS, Frame, Row, bar, frame
from yurt.cli.marks import Marks
from yurt.cli.out import Out
from yurt.contract.spec import RunSpec
from yurt.launcher.records import Snapshot

#: Seconds between two drawings, at least.
_REDRAW_S: Final = 0.5
#: Lines of the screen that are left to the tasks' output.
_LEFT_LINES: Final = 6
#: Characters of output that are gathered for one writing, at most.
_GATHERED: Final = 1 << 20
_GAP: Final = 2
_STATE_WIDTH: Final = 10
_STYLES: Final = {"running": "green", "finished": "green", "failed": "bold red", "lost": "bold red", "stopped": "dim"}


class Live:
    """A view for `yurt.cli.show.Show`. It draws only what has changed, and nothing while it is in the background."""

    def __init__(self, spec: RunSpec, out: Out, marks: Marks, *, colour: bool) -> None:
        self._spec = spec
        self._out = out
        self._marks = marks
        self._console = Console(
            file=out,  # type: ignore[arg-type]  # it has as much of a file as rich asks for
            force_terminal=True,
            color_system="standard" if colour else None,
            markup=False,
            highlight=False,
            emoji=False,
        )
        self._live = RichLive(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
        )
        self._drawn: Frame | None = None
        self._drawn_at = 0.0
        self._gathered: list[str] = []
        self._gathered_size = 0
        self._widths: list[int] = []

    def lines(self, text: str) -> None:
        """Show lines above the live ones; with the next look, or at once where they are many."""
        self._gathered.append(text)
        self._gathered_size += len(text)
        if self._gathered_size > _GATHERED:
            self._write()

    def look(self, snapshot: Snapshot) -> None:
        """Write what was gathered, and draw the run if it has changed."""
        if self._live.is_started and not self._in_foreground():
            self._live.stop()
        self._write()
        now = time.monotonic()
        if now - self._drawn_at < _REDRAW_S or self._out.gone or not self._in_foreground():
            return
        wanted = frame(self._spec, snapshot, time.time(), self._console.height - _LEFT_LINES)
        if wanted == self._drawn and self._live.is_started:
            return
        if not self._live.is_started:
            self._live.start()
        self._live.update(self._drawing(wanted), refresh=True)
        self._drawn, self._drawn_at = wanted, now

    def close(self) -> None:
        """Write what is left and take the live lines away."""
        if self._live.is_started:
            self._live.stop()
        self._write()

    def _write(self) -> None:
        text = "".join(self._gathered)
        self._gathered.clear()
        self._gathered_size = 0
        if not text:
            return
        if self._live.is_started:
            self._console.print(_AsItIs(text), end="", crop=False)
        else:
            self._out.write(text)

    def _drawing(self, wanted: Frame) -> Group:
        columns = zip(*(row.cells for row in wanted.rows), strict=True)
        widths = [max(len(cell) for cell in column) for column in columns]
        # A column never gets narrower: numbers that change their length would make the lines dance.
        self._widths = [max(pair) for pair in zip_longest(widths, self._widths, fillvalue=0)]
        task_width = max((len(row.task) for row in wanted.rows), default=0)
        layout = self._layout(task_width, has_bar=any(row.share is not None for row in wanted.rows))
        drawn = [Text(f"── {wanted.head} ──", style="dim", no_wrap=True, overflow="crop")]
        drawn += [self._row(row, task_width, layout) for row in wanted.rows]
        if wanted.more:
            drawn.append(Text(wanted.more, style="dim", no_wrap=True, overflow="crop"))
        return Group(*drawn)

    def _layout(self, task_width: int, *, has_bar: bool) -> _Layout:
        """What there is room for: without the metrics, then without the bar."""
        widths = list(self._widths)
        left = self._console.width - task_width - _GAP - _STATE_WIDTH - sum(width + _GAP for width in widths if width)
        bar_width = BAR + _GAP if has_bar else 0
        if left < bar_width and widths[METRICS:]:
            left += widths[METRICS] + _GAP
            widths[METRICS] = 0
        return _Layout(tuple(widths), bar=has_bar and left >= bar_width)

    def _row(self, row: Row, task_width: int, layout: _Layout) -> Text:
        text = Text(no_wrap=True, overflow="crop")
        text.append(f"{row.task:<{task_width}}", style=self._marks.style(row.task))
        text.append(f"  {row.state:<{_STATE_WIDTH}}", style=_STYLES.get(row.state, "yellow"))
        if layout.bar:
            done, rest = bar(row.share) if row.share is not None else (" " * BAR, "")
            text.append(f"  {done}", style="green").append(rest, style="dim")
        for cell, width in zip(row.cells, layout.widths, strict=True):
            if width:
                text.append(f"  {cell:<{width}}")
        return text

    def _in_foreground(self) -> bool:
        try:
            return os.tcgetpgrp(self._out.fileno()) == os.getpgrp()
        except OSError:
            return True  # not our controlling terminal: nobody else writes to it


@dataclass(frozen=True, slots=True)
class _Layout:
    """The widths of the cells, 0 for one that is left out, and whether there is a bar."""

    widths: tuple[int, ...]
    bar: bool


class _AsItIs:
    """Text that goes to the terminal as it is: no markup, no wrapping, no look at its width."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield Segment(self._text)
