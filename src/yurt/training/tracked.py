"""What a `Loop` was told to keep: models, optimizers, variables, metrics and states, each by the name it was given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from yurt.training import states, values
from yurt.training.begun import Begun
from yurt.training.errors import TrainingError
from yurt.training.gang import Gang
from yurt.training.variables import model_variables, named, optimizer_variables, plain


class Tracked:
    """The variables and the states of what was given. Raises TrainingError for what cannot be kept, naming it."""

    def __init__(self, given: Mapping[str, Any], gang: Gang) -> None:
        self._gang = gang
        self._variables: dict[str, Any] = {}
        self._stateful: dict[str, Any] = {}
        self.models: list[Any] = []
        self._sums: list[Any] = []
        for name, each in given.items():
            if not isinstance(name, str) or not name or "/" in name or name == "states":
                raise TrainingError(f"{name!r} cannot be the name of something tracked", hint="a word, such as model")
            if hasattr(each, "_flatten_layers"):
                self.models.append(each)
                self._variables.update(model_variables(each, optimizer=False, group=name))
        for name, each in given.items():
            if not hasattr(each, "_flatten_layers"):
                self._add(name, each)

    def read(self, *, boundary: bool) -> tuple[dict[str, Any], dict[str, Any]]:
        """Arrays and metadata; collective with several members. At an epoch's end the averages are equal already."""
        means = [] if boundary else [each for model in self.models for each in values.averages(model)]
        arrays = values.read(self._variables, self._gang, means=means, sums=self._sums)
        if not self._gang.leads:
            return {}, {}
        kept = {name: states.pack(each.get_state(), f"states/{name}", arrays) for name, each in self._stateful.items()}
        return arrays, {"states": kept}

    def restore(self, begun: Begun) -> None:
        """Put everything back. Raises TrainingError for what does not fit."""
        values.restore(self._variables, begun.arrays, begun.dtypes, self._gang, sums=self._sums)
        kept = begun.metadata.get("states", {})
        for name, each in self._stateful.items():
            if name not in kept:
                raise TrainingError(f"the state of {name!r} is not in the checkpoint")
            each.set_state(states.unpack(kept[name], begun.arrays))

    def _add(self, name: str, each: Any) -> None:
        import tensorflow as tf

        if callable(getattr(each, "get_state", None)) and callable(getattr(each, "set_state", None)):
            self._stateful[name] = each
        elif hasattr(each, "apply_gradients"):
            self._variables.update(self._of_optimizer(name, each))
        elif hasattr(each, "update_state") and hasattr(each, "result"):
            found = named(name, each.variables)
            self._variables.update(found)
            self._sums += [variable for variable in found.values() if self._is_own(variable)]
        elif hasattr(each, "assign"):
            self._variables.update(named(name, [each]))
        elif isinstance(each, tf.random.Generator):
            self._variables.update(named(name, [each.state]))
        elif isinstance(each, tf.Module):
            self._variables.update(named(name, each.variables))
        else:
            raise TrainingError(
                f"{name!r} is a {type(each).__name__}, which a checkpoint cannot keep",
                hint="a model, optimizer, variable or metric, or an object with get_state() and set_state(state)",
            )

    def _of_optimizer(self, name: str, optimizer: Any) -> dict[str, Any]:
        """Its variables; they are made if it is clear what it trains."""
        built = getattr(optimizer, "built", None) or getattr(optimizer, "_built", False)
        if not built and len(self.models) != 1:
            raise TrainingError(
                f"optimizer {name!r} has no variables yet", hint="optimizer.build(model.trainable_variables) first"
            )
        trainable = None if built else self.models[0].trainable_variables
        return optimizer_variables(optimizer, trainable, group=name, strategy=self._gang.strategy)

    def _is_own(self, variable: Any) -> bool:
        """Whether each member has a sum of its own, which nobody puts together."""
        import tensorflow as tf

        return self._gang.several and not isinstance(plain(variable), tf.distribute.DistributedValues)
