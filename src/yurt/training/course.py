"""The course of a training: where it begins, what is kept of it, and how it is left. For `fit` and for own loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from yurt.training import kept
from yurt.training.begun import Begun, begin
from yurt.training.errors import TrainingError
from yurt.training.gang import Gang, gang
from yurt.training.interruption import EXIT_CODE, Interruption
from yurt.training.pulse import Beat, Pulse
from yurt.training.saying import say
from yurt.training.writer import Writer

#: What is to be kept: arrays by name, and metadata. Reading it may be collective.
Content = Callable[[], tuple[Mapping[str, Any], Mapping[str, Any]]]


class Course:
    """One training in one folder; `every_steps` and `every_s` say when to save within an epoch."""

    def __init__(
        self,
        folder: Path | str | None,
        strategy: Any,
        *,
        every_steps: int | None,
        every_s: float | None,
    ) -> None:
        if every_steps is not None and (not isinstance(every_steps, int) or every_steps < 1):
            raise TrainingError(f"every_steps is {every_steps!r}", hint="a whole number of steps, 1 or more")
        if every_s is not None and not every_s > 0:
            raise TrainingError(f"every_s is {every_s!r}", hint="a number of seconds, more than 0")
        if folder is None:
            from yurt.training.folders import checkpoint_dir

            folder = checkpoint_dir()
        self.folder = Path(folder)
        self.interruption = Interruption()
        self._strategy = strategy
        self._gang: Gang | None = None
        self._every_steps, self._every_s = every_steps, every_s
        self._begun: Begun | None = None
        self._pulse: Pulse | None = None
        self._writer = Writer()
        self._last: kept.Kept | Begun | None = None

    def gang(self, strategy: Any = None) -> Gang:
        """The tasks that train together; `strategy`, where it is known, is the model's."""
        if self._gang is None:
            self._gang = gang(self._strategy if self._strategy is not None else strategy)
        return self._gang

    def begun(self, *, within: bool, strategy: Any = None) -> Begun:
        """Where training begins; read once, by the first who asks. All members call it."""
        if self._begun is None:
            self._begun = begin(self.folder, self.gang(strategy), within=within)
            self._last = self._begun if self._begun.name else None
        return self._begun

    def forget(self) -> Begun:
        """The same without the values, which may be large."""
        self._begun = replace(self._begun or Begun(), arrays={})
        return self._begun

    def start(self) -> None:
        """Training begins now: listen to SIGTERM, count steps."""
        begun = self._begun or Begun()
        self.interruption.watch()
        self._pulse = Pulse(
            self.gang(),
            lambda: self.interruption.told,
            every_steps=self._every_steps,
            every_s=self._every_s,
            steps_done=begun.steps_done,
        )

    def beat(self, steps_done: int) -> Beat:
        """What is to be done after this step."""
        assert self._pulse is not None
        return self._pulse.beat(steps_done)

    def keep(
        self, content: Content, *, epoch: int, step: int, steps_done: int, boundary: bool = False, final: bool = False
    ) -> None:
        """Read on all members, write on the leader, behind the training. Raises TrainingError."""
        members = self.gang()
        members.settle()
        arrays, metadata = content()
        if members.leads:

            def write() -> None:
                self._last = kept.write(
                    self.folder,
                    epoch=epoch,
                    step=step,
                    steps_done=steps_done,
                    boundary=boundary,
                    final=final,
                    variables=arrays,
                    metadata=metadata,
                )

            self._writer.put(write)
        if self._pulse is not None:
            self._pulse.saved(steps_done)

    def leave(self) -> None:
        """Everything is kept that can be: end with exit code 143, all members at the same time."""
        members = self.gang()
        self._writer.wait()
        members.total([0])
        if members.leads:
            say(f"interrupted: {self._where()}; exit code {EXIT_CODE}")
        self.interruption.leave()

    def end(self) -> None:
        """Training has ended well."""
        self._writer.wait()
        self.interruption.stop_watching()

    def _where(self) -> str:
        last = self._last
        if last is None:
            return "nothing was kept yet"
        if last.step:
            return f"saved epoch {last.epoch + 1}, step {last.step}"
        return f"saved the end of epoch {last.epoch}"
