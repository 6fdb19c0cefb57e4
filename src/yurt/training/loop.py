"""``Loop``: checkpoints, exact resuming, progress and SIGTERM for a training loop of one's own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from yurt.training import values
from yurt.training.course import Course
from yurt.training.errors import TrainingError
from yurt.training.loop_progress import LoopProgress
from yurt.training.resuming import DATA_STEPS, from_here, is_data, placed
from yurt.training.saying import say
from yurt.training.tracked import Tracked


class Loop:
    """The epochs and steps of a training, from where it was.

    ::

        loop = training.Loop({"model": model, "optimizer": optimizer}, epochs=20, steps=train.steps)
        batches = loop.data(train)
        for epoch, step in loop:
            loss = train_step(next(batches))
            loop.done(loss=loss)

    `tracked` names everything that has to go on: built Keras models, optimizers, tf.Variables, metrics, and objects
    with ``get_state()`` and ``set_state(state)``. `steps` are those of an epoch. A checkpoint is written at the end of
    every epoch, and within epochs after each `every_steps` steps and `every_s` seconds. `folder` is
    YURT_CHECKPOINT_DIR, else ``checkpoints``. `strategy` has to be given only where it cannot be found.

    What is kept is put back when a Loop is made. Under MultiWorkerMirroredStrategy every worker makes it, in the same
    place. Raises TrainingError for arguments or a checkpoint that do not fit.
    """

    def __init__(
        self,
        tracked: Mapping[str, Any],
        *,
        epochs: int,
        steps: int,
        every_steps: int | None = None,
        every_s: float | None = None,
        folder: Path | str | None = None,
        strategy: Any = None,
    ) -> None:
        for name, value in (("epochs", epochs), ("steps", steps)):
            if not isinstance(value, int) or value < 1:
                raise TrainingError(f"{name} is {value!r}", hint="a whole number, 1 or more")
        self.epochs, self.steps = epochs, steps
        self._course = Course(folder, strategy, every_steps=every_steps, every_s=every_s)
        self._gang = self._course.gang()
        self._tracked = Tracked(tracked, self._gang)
        self._begun = self._course.begun(within=True)
        self._ended = self._begun.ended(epochs)
        self.epoch, self.step = (epochs, 0) if self._ended else (self._begun.epoch, self._begun.step)
        self._steps_done = self._begun.steps_done
        self._data_steps: int | None = None
        self._progress = LoopProgress(epochs, steps)
        self._open: bool = False
        self._go_on()

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Epoch and step, both from 0. `done` has to be called after each."""
        self._course.start()
        while self.epoch < self.epochs:
            if self._open:
                raise TrainingError("a step ended without loop.done()", hint="call it once at the end of each step")
            self._open = True
            yield self.epoch, self.step
        if not self._ended:
            self._keep(final=True)
            self._ended = True
        self._progress.write(force=True)
        self._course.end()

    def done(self, **values_of_step: Any) -> None:
        """A step is done: count it, keep what is due, leave if this was asked for.

        The values (``loss=loss``) are shown; they may be tensors, and are fetched at most twice a second. All workers
        call it after each step.
        """
        if not self._open:
            raise TrainingError("loop.done() was called outside a step", hint="once in `for epoch, step in loop:`")
        self._open = False
        self._steps_done += 1
        shown = self.epoch, self.step + 1
        self.step += 1
        boundary = self.step == self.steps
        if boundary:
            self.epoch, self.step = self.epoch + 1, 0
            self._gang.settle()
            values.average(self._gang, self._tracked.models)
        self._progress.step(*shown, {} if self._gang.served and not boundary else values_of_step)
        beat = self._course.beat(self._steps_done)
        leaves = beat.leave and self.epoch < self.epochs
        if boundary or beat.save or leaves:
            self._keep(boundary=boundary)
        if leaves:
            self._course.leave()

    def data(self, x: Any, *, strategy: Any = None) -> Any:
        """An iterator over batches, from the place where training goes on. The time that it is waited for is shown.

        `x` is as for `Checkpoint.resume`. Under a strategy of several workers a batch is this worker's own part, as
        `strategy.run` takes it; under parameter servers it is an iterator for `coordinator.schedule`.
        """
        import tensorflow as tf

        own = strategy if strategy is not None else self._gang.strategy
        if is_data(x):
            self._data_steps = x.steps
            placed_x = placed(x, self._begun, self._gang.pipelines)
            batches = placed_x.dataset() if own is None or self._gang.served else placed_x.per_worker(own)
        else:
            batches = from_here(x, self._begun, self._gang.pipelines)
            if own is not None and not self._gang.served:
                batches = own.experimental_distribute_dataset(batches)
        if self._gang.served:
            coordinator = tf.distribute.coordinator.ClusterCoordinator(own)
            return iter(coordinator.create_per_worker_dataset(batches))
        return self._waited_for(iter(batches))

    def _waited_for(self, batches: Iterator[Any]) -> Iterator[Any]:
        while True:
            began = time.monotonic()
            try:
                batch = next(batches)
            except StopIteration:
                return
            self._progress.waited(time.monotonic() - began)
            yield batch

    def _go_on(self) -> None:
        begun = self._begun
        if begun.name is None:
            return
        path = self._course.folder / begun.name
        if begun.step >= self.steps:
            raise TrainingError(
                f"{path} is {begun.step} steps into an epoch, which has {self.steps} steps now",
                hint="the same steps as before, or another folder",
            )
        try:
            self._tracked.restore(begun)
        except TrainingError as error:
            raise TrainingError(
                f"{path} is of another training: {error}",
                hint="remove the folder, or give another one, to begin anew",
            ) from None
        self._begun = self._course.forget()
        if self._gang.leads and self._ended:
            say(f"training had ended already, by {path}: nothing is trained (to begin anew, remove that folder)")
        elif self._gang.leads:
            say(f"training goes on at epoch {begun.epoch + 1}, step {begun.step + 1}, from {path}")

    def _keep(self, *, boundary: bool = True, final: bool = False) -> None:
        def content() -> tuple[Mapping[str, Any], Mapping[str, Any]]:
            arrays, metadata = self._tracked.read(boundary=boundary)
            metadata["epochs"] = self.epochs
            if self._data_steps is not None:
                metadata[DATA_STEPS] = self._data_steps
            return arrays, metadata

        self._course.keep(
            content, epoch=self.epoch, step=self.step, steps_done=self._steps_done, boundary=boundary, final=final
        )
