"""``Checkpoint``: `fit` goes on exactly where it was, whenever and however its process ended."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NoReturn

from yurt.training import states, values
from yurt.training.attaching import attach, begin_epoch_at, build
from yurt.training.begun import Begun
from yurt.training.course import Course
from yurt.training.errors import TrainingError
from yurt.training.resuming import DATA_STEPS, from_here, is_data
from yurt.training.saying import say
from yurt.training.variables import is_built, metric_variables, model_variables, place_of


class Checkpoint:
    """A callback for `fit` of Keras 3 and of tf_keras, under any strategy.

    `folder` is YURT_CHECKPOINT_DIR, else ``checkpoints``. A checkpoint is written at the end of every epoch, and within
    epochs after each `every_steps` steps and `every_s` seconds; steps within an epoch need the data to be passed
    through `resume`. `strategy` has to be given only where it cannot be found: it is made before, and one in a process.

    On SIGTERM the step is finished, everything is kept, and the process ends with exit code 143. A Checkpoint serves
    one call of `fit`. Raises TrainingError for arguments that cannot be right.
    """

    def __init__(
        self,
        folder: Path | str | None = None,
        *,
        every_steps: int | None = None,
        every_s: float | None = None,
        strategy: Any = None,
    ) -> None:
        self._course = Course(folder, strategy, every_steps=every_steps, every_s=every_s)
        self._within_wanted = every_steps is not None or every_s is not None
        self._within = False
        self._data_steps: int | None = None
        self._of_a_batch: Any = None
        self._begun = Begun()
        self._joined: Any = None
        attach(Checkpoint)

    def resume(self, x: Any) -> Any:
        """The data for `fit`, from where training goes on: a dataset without end, so `fit` needs ``steps_per_epoch``.

        `x` is a `yurt.data.Data`; or a tf.data.Dataset that is one epoch, the same each time, or repeats without end;
        or a function of an epoch's number (an int64 tensor) that gives the dataset of that epoch. All workers call it.
        """
        attach(Checkpoint)
        self._within = True
        if is_data(x):
            self._data_steps = x.steps
        begun = self._course.begun(within=True)
        data = from_here(x, begun, self._course.gang().pipelines)
        self._of_a_batch = data.element_spec
        return data

    # What follows is called by the CallbackList, see `attaching`.

    def join(self, callbacks: Any, model: Any, params: dict[str, Any]) -> None:
        """Become part of one `fit`."""
        if self._joined is not None:
            raise TrainingError(
                "this Checkpoint has served another call of fit", hint="give each a Checkpoint with a folder of its own"
            )
        self._joined, self._model = callbacks, model
        self._epochs, self._steps = params.get("epochs"), params.get("steps")
        self._legacy = hasattr(model, "_maybe_load_initial_counters_from_ckpt")
        self._metrics_to_add = False
        self._leave_at_epoch_end = False
        self._ended_before = False

    def on_train_begin(self) -> None:
        """Put everything back, and set where `fit` begins. Raises TrainingError before anything is trained."""
        model = self._model
        self._refuse_what_cannot_be()
        begun = self._begun = self._course.begun(within=self._within, strategy=model.distribute_strategy)
        gang = self._course.gang()
        variables = model_variables(model)
        at_once = 1 if self._legacy else model.steps_per_execution
        if begun.step % at_once:
            raise TrainingError(f"training goes on at step {begun.step}, no multiple of steps_per_execution={at_once}")
        self._epoch, self._step, self._steps_before = begun.epoch, begun.step, begun.steps_done - begun.step
        if begun.name is not None:
            try:
                values.restore(variables, begun.arrays, begun.dtypes, gang)
            except TrainingError as error:
                raise TrainingError(
                    f"{self._course.folder / begun.name} is of another model: {error}",
                    hint="remove the folder, or give Checkpoint another one, to begin anew",
                ) from None
            states.spread(self._joined.callbacks, begun.metadata.get("callbacks", {}), begun.arrays)
            history = states.unpack(begun.metadata.get("history", {}), begun.arrays)
            model.history.history, model.history.epoch = history.get("history", {}), history.get("epoch", [])
            self._ended_before = begun.ended(self._epochs)
            if gang.leads:
                self._tell(begun)
        if self._within_wanted and not self._within and gang.leads:
            say(
                "checkpoints are kept at the end of epochs alone, since fit's data was not passed through "
                "checkpoint.resume(...)"
            )
        epoch, step = (self._epochs, 0) if self._ended_before else (begun.epoch, begun.step)
        self._set_beginning(epoch, step)
        self._course.start()

    def on_epoch_begin(self, epoch: int) -> None:
        """Within an epoch: the metrics' sums so far, and the first step."""
        resumed = self._begun.step if epoch == self._begun.epoch else 0
        self._epoch, self._step = epoch, resumed
        if not resumed:
            self._forget()
            return
        stored = {name for name in self._begun.arrays if name.startswith("metrics/")}
        self._metrics_to_add = len(metric_variables(self._model.metrics)) < len(stored)
        if not self._metrics_to_add:
            self._restore_metrics()
            self._forget()
        if not self._legacy:
            begin_epoch_at(resumed)

    def on_train_batch_end(self, batch: int) -> None:
        """After step `batch` of the epoch, from 0."""
        self._step = batch + 1
        if self._metrics_to_add:
            self._add_metrics()
        beat = self._course.beat(self._steps_before + self._step)
        last = self._steps is not None and self._step >= self._steps
        within = self._within and self._steps is not None and not last
        if within and (beat.save or beat.leave):
            self._keep(self._epoch, self._step)
        if beat.leave:
            if last:
                self._leave_at_epoch_end = True
            else:
                self._course.leave()

    def on_epoch_end(self, epoch: int) -> None:
        """After the epoch's validation, and after all other callbacks."""
        self._steps_before, self._epoch, self._step = self._steps_before + self._step, epoch + 1, 0
        self._keep(self._epoch, 0, boundary=True)
        leave = self._course.beat(self._steps_before).leave or self._leave_at_epoch_end
        goes_on = not self._model.stop_training and (self._epochs is None or epoch + 1 < self._epochs)
        if leave and goes_on:
            self._course.leave()

    def on_train_end(self) -> None:
        """The last checkpoint says that training has ended."""
        if not self._ended_before:
            self._keep(self._epoch, 0, boundary=True, final=True)
        self._set_beginning(0, 0)
        if self._legacy:
            self._model._training_state = None  # noqa: SLF001
        self._course.end()

    def set_model(self, _model: Any) -> NoReturn:
        """A CallbackList calls this that knows nothing of this class."""
        raise TrainingError("Checkpoint was made before Keras was imported", hint="import Keras first")

    def _refuse_what_cannot_be(self) -> None:
        model = self._model
        if not self._legacy and not is_built(model) and self._of_a_batch is not None:
            build(model, self._of_a_batch)
        if not is_built(model):
            raise TrainingError(
                f"model {model.name!r} is not built when fit begins, so a checkpoint could not be put back into it",
                hint="build it before, inside the strategy's scope: call it on one batch, or model.build((None, ...))",
            )
        at_once = 1 if self._legacy else model.steps_per_execution
        if self._steps and self._steps % at_once:
            raise TrainingError(
                f"an epoch of {self._steps} steps is no multiple of steps_per_execution={at_once}: Keras 3 makes more"
                " steps than asked for",
                hint=f"steps_per_epoch={-(-self._steps // at_once) * at_once}",
            )
        if self._within and self._steps is None:
            raise TrainingError(
                "fit needs steps_per_epoch: the data of checkpoint.resume(...) have no end", hint="steps_per_epoch=..."
            )

    def _set_beginning(self, epoch: int | None, step: int) -> None:
        if self._steps is not None and step >= self._steps:
            raise TrainingError(
                f"{self._begun.name} is {step} steps into an epoch, which has {self._steps} steps now",
                hint="the same steps_per_epoch as before, or another folder",
            )
        if self._legacy:
            self._model._training_state = _LegacyBeginning(epoch or 0, step)  # noqa: SLF001
            self._model._train_counter.assign(self._begun.steps_done)  # noqa: SLF001
        else:
            self._model._initial_epoch = epoch or None  # noqa: SLF001

    def _tell(self, begun: Begun) -> None:
        where = f"{self._course.folder / str(begun.name)}"
        if self._ended_before:
            say(f"training had ended already, by {where}: nothing is trained (to begin anew, remove that folder)")
        elif begun.step:
            say(f"training goes on at epoch {begun.epoch + 1}, step {begun.step + 1}, from {where}")
        else:
            say(f"training goes on at epoch {begun.epoch + 1}, from {where}")

    def _forget(self) -> None:
        """Everything is where it belongs: the checkpoint's own copy is not needed any longer."""
        self._begun = self._course.forget()

    def _restore_metrics(self) -> None:
        model = self._model
        variables = metric_variables(model.metrics)
        sums = values.own_sums(model) if self._course.gang().several else ()
        values.restore(variables, self._begun.arrays, self._begun.dtypes, self._course.gang(), sums=sums)

    def _add_metrics(self) -> None:
        """tf_keras makes metrics in the first step, so what there was is added after it: their variables are sums."""
        self._metrics_to_add = False
        gang = self._course.gang()
        gang.settle()
        variables = metric_variables(self._model.metrics)
        now = values.read(variables, gang)
        stored = {place_of(name): value for name, value in self._begun.arrays.items() if name.startswith("metrics/")}
        whole = {name: value + stored.get(place_of(name), 0) for name, value in now.items()}
        values.restore(variables, {name: value.astype(now[name].dtype) for name, value in whole.items()}, {}, gang)
        self._forget()

    def _keep(self, epoch: int, step: int, *, boundary: bool = False, final: bool = False) -> None:
        self._course.keep(
            lambda: self._content(boundary=boundary),
            epoch=epoch,
            step=step,
            steps_done=self._steps_before + self._step,
            boundary=boundary,
            final=final,
        )

    def _content(self, *, boundary: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        model, gang = self._model, self._course.gang()
        # At an epoch's end the averages are equal on all members already.
        means = values.averages(model) if gang.several and not boundary else ()
        arrays = values.read(model_variables(model), gang, means=means)
        if not boundary:
            arrays.update(values.read_metrics(model, gang))
        if not gang.leads:
            return {}, {}
        callbacks, more = states.gather(self._joined.callbacks)
        history = {"history": model.history.history, "epoch": model.history.epoch}
        metadata = {
            "epochs": self._epochs,
            "stopped": bool(model.stop_training),
            "history": states.pack(history, "history", more),
            "callbacks": callbacks,
            DATA_STEPS: self._data_steps,
        }
        return {**arrays, **more}, {name: value for name, value in metadata.items() if value is not None}


class _LegacyBeginning:
    """What tf_keras asks where `fit` begins."""

    def __init__(self, epoch: int, step: int) -> None:
        self._epoch, self._step = epoch, step

    def maybe_load_initial_counters_from_ckpt(self, _steps: Any, initial_epoch: int, mode: Any) -> tuple[int, int]:
        """Epoch and step, both from 0."""
        del mode  # it trains
        return max(self._epoch, initial_epoch), self._step
